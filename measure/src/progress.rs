//! How far a longer run is.

/// One step of a run that is about to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step<'a> {
    /// How many steps are done.
    pub done: u64,
    /// How many there are.
    pub total: u64,
    /// What comes now, in a few words.
    pub name: &'a str,
}

/// Who is told about each step. Pass `&mut |_| {}` if nobody wants to know.
pub type Progress<'a> = &'a mut dyn FnMut(Step<'_>);
