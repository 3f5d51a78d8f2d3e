//! The part of `shaders/attention_rows.wgsl` that goes over an invocation's rows and channels, written out.

use super::super::fused::GateKind;
use super::super::rotation::Lanes;
use std::fmt::Write;

/// How many variables there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Unrolled {
    /// Groups of four queries to an invocation.
    pub fours: usize,
    /// Words of four channels of a query.
    pub words: usize,
    /// Words of four channels of a value.
    pub value_words: usize,
    /// What gates are made from; `None` without contextual position encoding.
    pub gates: Option<GateKind>,
    /// Whether the queries that meet the position embeddings are tensors of their own.
    pub contextual_query: bool,
    pub turning: Turning,
}

/// How keys rotate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Turning {
    /// They do not.
    No,
    /// By lanes of two words of four channels.
    Lanes(Lanes),
    /// By channels, as words are loaded.
    Channels,
}

impl Unrolled {
    /// The same name, the same text.
    pub(crate) fn name(&self) -> String {
        let Self { fours, words, value_words, .. } = self;
        let gates = match (self.gates, self.contextual_query) {
            (None, _) => String::new(),
            (Some(gates), false) => format!(".{gates:?}"),
            (Some(gates), true) => format!(".{gates:?}.query"),
        };
        let turning = match self.turning {
            Turning::No => String::new(),
            Turning::Lanes(Lanes { first, count, distance }) => format!(".lanes_{first}_{count}_{distance}"),
            Turning::Channels => ".channels".into(),
        };
        format!("rows_{fours}x{words}x{value_words}{gates}{turning}").to_ascii_lowercase()
    }

    /// Functions over variables `rows_F` (four queries), `q_F_C` (word C of four queries, as a matrix' columns),
    /// `sums_F_C` (word C of their outputs so far), `k_C`, `v_C` and `g_C` (words of this lane's key).
    pub(crate) fn wgsl(&self) -> String {
        let mut text = format!("const ROWS = {}u;\n", 4 * self.fours);
        self.variables(&mut text);
        let own = self.matrices("q_word", "q");
        self.function(&mut text, "load_rows(batch: u32, head: u32, first: u32, range: vec2<i32>)", |lines| {
            for f in 0..self.fours {
                lines.push(format!("rows_{f} = four_rows(batch, tokens_of(first + {}u), vec4(head), range);", 4 * f));
            }
            lines.extend(own.iter().cloned());
        });
        self.function(&mut text, "load_key(batch: u32, head: u32, key: u32)", |lines| self.load_key(lines));
        self.function(&mut text, "plain_key(batch: u32, key: u32, lane: u32)", |lines| self.step(lines, false));
        self.function(&mut text, "finish_rows(batch: u32, head: u32, first: u32)", |lines| self.finish(lines));
        if self.gates.is_some() {
            let contextual = if self.contextual_query { self.matrices("query_word", "query") } else { Vec::new() };
            let reload = if self.contextual_query { own } else { Vec::new() };
            let signature = |name| format!("{name}(batch: u32, head: u32, first: u32)");
            self.function(&mut text, &signature("load_contextual_rows"), |lines| lines.extend(contextual));
            self.function(&mut text, &signature("reload_rows"), |lines| lines.extend(reload));
            self.contextual(&mut text);
        }
        text
    }

    fn variables(&self, text: &mut String) {
        let mut declare = |name: String, kind: &str| {
            let _ = writeln!(text, "var<private> {name}: {kind};");
        };
        (0..self.words).for_each(|c| declare(format!("k_{c}"), "vec4<f32>"));
        (0..self.value_words).for_each(|c| declare(format!("v_{c}"), "vec4<f32>"));
        if self.gates == Some(GateKind::Keys) {
            (0..self.words).for_each(|c| declare(format!("g_{c}"), "vec4<f32>"));
        }
        for f in 0..self.fours {
            declare(format!("rows_{f}"), "FourRows");
            (0..self.words).for_each(|c| declare(format!("q_{f}_{c}"), "mat4x4<f32>"));
            (0..self.value_words).for_each(|c| declare(format!("sums_{f}_{c}"), "mat4x4<f32>"));
        }
    }

    fn function(&self, text: &mut String, signature: &str, fill: impl FnOnce(&mut Vec<String>)) {
        let mut lines = Vec::new();
        fill(&mut lines);
        let _ = writeln!(text, "\nfn {signature} {{");
        lines.iter().for_each(|line| {
            let _ = writeln!(text, "    {line}");
        });
        text.push_str("}\n");
    }

    /// Loads of all queries' words from a tensor.
    fn matrices(&self, load: &str, tensor: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for row in 0..4 * self.fours {
            lines.push(format!("let at_{row} = place(params.{tensor}, batch, token_of(first + {row}u), head);"));
        }
        for f in 0..self.fours {
            for c in 0..self.words {
                let column = |i| format!("{load}(at_{}, {c}u)", 4 * f + i);
                let columns = [0, 1, 2, 3].map(column).join(", ");
                lines.push(format!("q_{f}_{c} = mat4x4({columns});"));
            }
        }
        lines
    }

    fn load_key(&self, lines: &mut Vec<String>) {
        if self.turning != Turning::No {
            lines.push("let position = position_of_key(key);".into());
        }
        self.load_words(lines, "v", "v", self.value_words);
        self.load_turned(lines, "k", "k");
        if self.gates == Some(GateKind::Keys) {
            self.load_turned(lines, "g", "gate_keys");
        }
    }

    fn load_words(&self, lines: &mut Vec<String>, to: &str, tensor: &str, words: usize) {
        lines.push(format!("let {tensor}_at = place(params.{tensor}, batch, key, head);"));
        (0..words).for_each(|c| lines.push(format!("{to}_{c} = {tensor}_word({tensor}_at, {c}u);")));
    }

    /// Words of a tensor that rotates as keys do.
    fn load_turned(&self, lines: &mut Vec<String>, to: &str, tensor: &str) {
        if self.turning == Turning::Channels {
            lines.push(format!("let {tensor}_at = place(params.{tensor}, batch, key, head);"));
            let load = |c| format!("{to}_{c} = {tensor}_turned({tensor}_at, {c}u, position);");
            return lines.extend((0..self.words).map(load));
        }
        self.load_words(lines, to, tensor, self.words);
        let Turning::Lanes(lanes) = self.turning else { return };
        for lane in 0..lanes.count {
            let [a, b] = lanes.words(lane);
            lines.push(format!("let turned_{to}_{lane} = turned({lane}u, position, Two({to}_{a}, {to}_{b}));"));
            lines.push(format!("{to}_{a} = turned_{to}_{lane}.first;"));
            lines.push(format!("{to}_{b} = turned_{to}_{lane}.second;"));
        }
    }

    /// `to_F = q_F · words` for the words of one lane.
    fn products(&self, lines: &mut Vec<String>, to: &str, words: &str) {
        (0..self.fours).for_each(|f| lines.push(format!("var {to}_{f} = vec4(0.0);")));
        for c in 0..self.words {
            lines.push(format!("let {to}_word_{c} = from_lane({words}_{c}, lane);"));
            (0..self.fours).for_each(|f| lines.push(format!("{to}_{f} += {to}_word_{c} * q_{f}_{c};")));
        }
    }

    /// All rows take in one lane's key.
    fn step(&self, lines: &mut Vec<String>, gated: bool) {
        self.products(lines, "product", "k");
        let gate_words = match self.gates.filter(|_| gated) {
            Some(GateKind::Keys) => Some("g"),
            Some(GateKind::Values) => Some("v"),
            Some(GateKind::Logits) | None => None,
        };
        let gate = gate_words.map_or("product", |words| {
            self.products(lines, "gate", words);
            "gate"
        });
        for f in 0..self.fours {
            lines.push(format!("let bias_{f} = biases(rows_{f}, batch, key);"));
            let seen = format!("seen(rows_{f}, batch, key)");
            lines.push(format!("var logits_{f} = hide({seen}, product_{f} * params.scale + bias_{f});"));
            if gated {
                let see = format!("select(vec4(0.0), bias_{f}, GATES_SEE_BIAS)");
                let gates = format!("gates(logits_{f}, {gate}_{f} * params.scale + {see})");
                lines.push(format!("count(&rows_{f}, {gates});"));
                lines.push(format!("logits_{f} = contextual(rows_{f}, logits_{f});"));
            } else {
                lines.push(format!("logits_{f} = settled(rows_{f}, logits_{f});"));
            }
            lines.push(format!("let weights_{f} = weigh(&rows_{f}, logits_{f});"));
        }
        for c in 0..self.value_words {
            lines.push(format!("let value_{c} = from_lane(v_{c}, lane);"));
            for f in 0..self.fours {
                lines.push(format!("sums_{f}_{c} = take_in(sums_{f}_{c}, value_{c}, weights_{f});"));
            }
        }
    }

    fn finish(&self, lines: &mut Vec<String>) {
        for row in 0..4 * self.fours {
            let (f, i) = (row / 4, row % 4);
            lines.push(format!("if (first + {row}u < params.tokens) {{"));
            lines.push(format!("    let at = place(params.out, batch, first + {row}u, head);"));
            lines.push(format!("    let by = finish_row(rows_{f}, {i}u, batch);"));
            for c in 0..self.value_words {
                lines.push(format!("    store_out_word(at, {c}u, sums_{f}_{c}[{i}] * by);"));
            }
            lines.push("}".into());
        }
    }

    fn contextual(&self, text: &mut String) {
        let fours = || 0..self.fours;
        self.function(text, "load_position(head: u32, position: u32)", |lines| {
            lines.extend((0..self.words).map(|c| format!("k_{c} = load_embedding(head, position, {c}u);")));
        });
        let meet = "meet_position(batch: u32, head: u32, first: u32, position: u32, lane: u32)";
        self.function(text, meet, |lines| {
            self.products(lines, "product", "k");
            for row in 0..4 * self.fours {
                lines.push(format!(
                    "z[place(params.z, batch, token_of(first + {row}u), head) + position * params.z.channel] = \
                     product_{}[{}];",
                    row / 4,
                    row % 4
                ));
            }
        });
        self.function(text, "start_counting_rows(batch: u32)", |lines| {
            lines.extend(fours().map(|f| format!("start_counting(&rows_{f}, batch);")));
        });
        self.function(text, "are_rows_saturated() -> bool", |lines| {
            let all: Vec<_> = fours().map(|f| format!("is_saturated(rows_{f})")).collect();
            lines.push(format!("return {};", all.join(" && ")));
        });
        self.function(text, "settle_rows()", |lines| {
            lines.extend(fours().map(|f| format!("rows_{f}.below = rows_{f}.above;")));
        });
        self.function(text, "gated_key(batch: u32, key: u32, lane: u32)", |lines| self.step(lines, true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_text() {
        let plain = Unrolled {
            fours: 2,
            words: 16,
            value_words: 16,
            gates: None,
            contextual_query: false,
            turning: Turning::No,
        };
        let gates = [None, Some(GateKind::Logits), Some(GateKind::Keys), Some(GateKind::Values)];
        let mut variants: Vec<_> = gates.map(|gates| Unrolled { gates, ..plain }).into();
        variants.extend([1, 3].map(|fours| Unrolled { fours, ..plain }));
        variants.push(Unrolled { words: 4, ..plain });
        variants.push(Unrolled { gates: gates[1], contextual_query: true, ..plain });
        let turning = [(0, 8, 8), (0, 8, 1), (8, 4, 1)];
        let lanes = turning.map(|(first, count, distance)| Turning::Lanes(Lanes { first, count, distance }));
        variants.extend(lanes.into_iter().chain([Turning::Channels]).map(|turning| Unrolled { turning, ..plain }));
        let names: std::collections::HashSet<_> = variants.iter().map(Unrolled::name).collect();
        let texts: std::collections::HashSet<_> = variants.iter().map(Unrolled::wgsl).collect();
        assert_eq!((names.len(), texts.len()), (variants.len(), variants.len()));
    }
}
