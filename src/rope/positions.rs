//! Where tokens stand, and which rows of a cache they are kept in.

use crate::gpu::View;
use crate::{ElementType, Error, Result};

/// Where the tokens stand.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Positions {
    /// Token `t` of every row stands at this position plus `t`.
    Start(i32),
    /// Every token stands at this one position: a shift by so many tokens, forward or back, of what was rotated before
    /// ([`Rope::without_attention_factor`](super::Rope::without_attention_factor)).
    Same(i32),
    /// Token `t` of row `b` stands at the `b`-th number of a device buffer plus `t`: an i32 view `[batch, 1, axes, 1]`,
    /// or `[1, 1, axes, 1]` for all rows. A prepared step is recorded again for the next token once the buffer has
    /// changed. With left padding, a row's number is negative by the length of its padding. Past `i32::MAX` positions wrap.
    StartPerRow(View),
    /// Each token stands where a device buffer says: an i32 view `[batch, tokens, axes, 1]`, where one row may serve the
    /// whole batch, and one token all tokens.
    PerToken(View),
}

impl Default for Positions {
    fn default() -> Self {
        Self::Start(0)
    }
}

/// Which rows of a cache `[batch, rows, heads, channels]` the tokens are written to. A token whose row is negative or
/// past the cache's end is not written. Two tokens must not name one row.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CacheRows {
    /// Token `t` of row `b` goes to the `b`-th number of a device buffer plus `t`: an i32 view `[batch, 1, 1, 1]`, or
    /// `[1, 1, 1, 1]` for all rows.
    StartPerRow(View),
    /// Each token goes to the row that a device buffer says: an i32 view `[batch, tokens, 1, 1]`, or
    /// `[1, tokens, 1, 1]` for all rows.
    PerToken(View),
}

/// Numbers that a kernel reads for each token, and what a token's place adds to them.
pub(super) struct Numbers<'a> {
    pub argument: &'static str,
    pub view: &'a View,
    /// Added for each token.
    pub step: i32,
    /// `[batch, tokens, axes]` that the view may have; a 1 there or in the view serves all.
    pub wanted: [usize; 3],
    /// Whether one token's number may serve all tokens.
    pub shared: bool,
}

impl Positions {
    /// The buffer that they come from, if they do.
    pub(crate) fn view(&self) -> Option<&View> {
        match self {
            Self::Start(_) | Self::Same(_) => None,
            Self::StartPerRow(view) | Self::PerToken(view) => Some(view),
        }
    }

    /// What the kernel reads, if it reads any.
    pub(super) fn numbers(&self, [batch, tokens]: [usize; 2], axes: usize) -> Option<Numbers<'_>> {
        let (view, step, tokens) = match self {
            Self::Start(_) | Self::Same(_) => return None,
            Self::StartPerRow(view) => (view, 1, 1),
            Self::PerToken(view) => (view, 0, tokens),
        };
        Some(Numbers { argument: "positions", view, step, wanted: [batch, tokens, axes], shared: true })
    }
}

impl CacheRows {
    /// The buffer that they come from.
    pub(super) fn view(&self) -> &View {
        match self {
            Self::StartPerRow(view) | Self::PerToken(view) => view,
        }
    }

    pub(super) fn numbers(&self, [batch, tokens]: [usize; 2]) -> Numbers<'_> {
        let (view, step, tokens) = match self {
            Self::StartPerRow(view) => (view, 1, 1),
            Self::PerToken(view) => (view, 0, tokens),
        };
        // One row for several tokens would be a race.
        Numbers { argument: "rows", view, step, wanted: [batch, tokens, 1], shared: false }
    }
}

impl Numbers<'_> {
    /// Refuses a view of another type, usage or shape.
    pub(super) fn check(&self) -> Result<()> {
        self.view.expect_element(self.argument, ElementType::I32)?;
        self.view.expect_usage(self.argument, wgpu::BufferUsages::STORAGE)?;
        let [batch, tokens, axes] = self.wanted;
        let [b, t, a, channels] = self.view.shape();
        let fits = |n: usize, wanted: usize| n == wanted || n == 1;
        let tokens_fit = if self.shared { fits(t, tokens) } else { t == tokens };
        if fits(b, batch) && tokens_fit && a == axes && channels == 1 {
            return Ok(());
        }
        Err(Error::tensor(
            self.argument,
            format!("{:?}", self.view.shape()),
            format!(
                "[{batch}, {tokens}, {axes}, 1], where a 1 serves the whole batch{}",
                if self.shared { " or all tokens" } else { "" }
            ),
        ))
    }

    /// The view's layout with a place for each row and token.
    pub(super) fn layout(&self, [batch, tokens]: [usize; 2]) -> crate::Layout {
        let layout = self.view.layout();
        let [b, t, ..] = layout.shape();
        let layout = if b == 1 { layout.repeated(0, batch) } else { layout };
        if t == 1 { layout.repeated(1, tokens) } else { layout }
    }
}
