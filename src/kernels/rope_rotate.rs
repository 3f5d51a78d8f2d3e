//! `shaders/rope_rotate.wgsl`: its variants, its bindings and its parameters; [`Job`] plans a rotation with them.

mod plan;

pub(crate) use plan::{CacheRows, Job};

use super::modules::{self, Lane, Module};
use super::place::Place;
use super::words;
use crate::gpu::{Access, Binding, Shader};
use crate::{ElementType, Pairing};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = modules::module!("rope_rotate");

/// Where the turning angle comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Angles {
    /// Made in the kernel.
    Turns,
    /// Read from a table.
    Table,
}

/// Which buffers the tensors lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Data {
    /// All in one.
    One,
    /// Queries and keys each in place, in buffers of their own.
    InPlace,
    /// Queries alone, from one to another.
    CopyQ,
    /// Queries and keys, from two to two others.
    Copy,
}

impl Data {
    fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::InPlace => "in_place",
            Self::CopyQ => "copy_q",
            Self::Copy => "copy",
        }
    }

    /// The bindings, each with the tensors that are reached through it.
    fn bindings(self) -> &'static [(Binding, &'static [Tensor])] {
        use Access::{Read, ReadWrite};
        use Tensor::{K, KOut, Q, QOut};
        const fn binding(index: u32, name: &'static str, access: Access) -> Binding {
            Binding { index, name, access }
        }
        const ONE: &[(Binding, &[Tensor])] = &[(binding(3, "data", ReadWrite), &[Q, QOut, K, KOut])];
        const IN_PLACE: &[(Binding, &[Tensor])] =
            &[(binding(3, "q", ReadWrite), &[Q, QOut]), (binding(4, "k", ReadWrite), &[K, KOut])];
        const COPY_Q: &[(Binding, &[Tensor])] =
            &[(binding(3, "q", Read), &[Q]), (binding(4, "q_out", ReadWrite), &[QOut])];
        const COPY: &[(Binding, &[Tensor])] = &[
            (binding(3, "q", Read), &[Q]),
            (binding(4, "q_out", ReadWrite), &[QOut]),
            (binding(5, "k", Read), &[K]),
            (binding(6, "k_out", ReadWrite), &[KOut]),
        ];
        match self {
            Self::One => ONE,
            Self::InPlace => IN_PLACE,
            Self::CopyQ => COPY_Q,
            Self::Copy => COPY,
        }
    }
}

/// The tensors of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tensor {
    Q,
    QOut,
    K,
    KOut,
    Positions,
    Rows,
}

/// The uniform, as the shader declares it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(crate) struct Params {
    q: Place,
    q_out: Place,
    k: Place,
    k_out: Place,
    position: Place,
    row: Place,
    start: i32,
    start_batch: i32,
    start_token: i32,
    row_start: i32,
    row_token: i32,
    cache_rows: u32,
    tokens: u32,
    rows: u32,
    groups: u32,
    q_heads: u32,
    k_heads: u32,
    q_group: u32,
    k_group: u32,
    lanes: u32,
    copies: u32,
    first: u32,
    lane_step: u32,
    pair_step: u32,
    cos_scale: f32,
    sin_scale: f32,
}

/// What makes one variant differ from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub data: Data,
    pub elements: Elements,
    pub angles: Angles,
    pub lane: Lane,
    pub pairing: Pairing,
    pub positions: bool,
    pub axes: bool,
    /// Whose output goes to rows of a cache.
    pub rows: Option<Tensor>,
    pub batched: bool,
    pub copies: bool,
    /// Invocations to a group: lanes, groups of heads, tokens.
    pub workgroup: [u32; 3],
}

/// How the elements of queries and keys are stored, before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Elements {
    pub q: ElementType,
    pub q_out: ElementType,
    pub k: ElementType,
    pub k_out: ElementType,
}

impl Elements {
    pub(crate) fn all(element: ElementType) -> Self {
        Self { q: element, q_out: element, k: element, k_out: element }
    }

    fn of(self, tensor: Tensor) -> ElementType {
        match tensor {
            Tensor::Q => self.q,
            Tensor::QOut => self.q_out,
            Tensor::K => self.k,
            Tensor::KOut => self.k_out,
            Tensor::Positions | Tensor::Rows => ElementType::I32,
        }
    }
}

impl Variant {
    /// The finished shader.
    pub(crate) fn shader(&self) -> Shader {
        let angles = match self.angles {
            Angles::Turns => modules::ANGLES_TURNS,
            Angles::Table => modules::ANGLES_TABLE,
        };
        let positions = self.lane.positions(self.positions);
        let rows = if self.rows.is_some() { modules::ROWS_BUFFER } else { modules::ROWS_NONE };
        let pairing = self.lane.pairing(self.pairing);
        let mut text = vec![self.lane.module().wgsl, modules::PAIRS.wgsl, pairing.wgsl, modules::TURN.wgsl];
        text.push(modules::PLACE.wgsl);
        text.extend(words::halves(self.lane, self.used_elements()).map(|halves| halves.wgsl));
        let data = self.data_text();
        text.extend([&data, angles.wgsl, positions.wgsl, rows.wgsl, KERNEL.wgsl]);
        let flag = |on: bool| f64::from(u8::from(on));
        let [x, y, z] = self.workgroup;
        Shader {
            name: self.name(&[pairing.name, angles.name, positions.name, rows.name]),
            wgsl: Shader::compose(&text),
            constants: vec![
                ("WG_X", x.into()),
                ("WG_Y", y.into()),
                ("WG_Z", z.into()),
                ("BATCHED", flag(self.batched)),
                ("COPIES", flag(self.copies)),
                ("AXES", flag(self.axes)),
                ("Q_ROWS", flag(self.rows == Some(Tensor::QOut))),
                ("K_ROWS", flag(self.rows == Some(Tensor::KOut))),
            ],
            bindings: self.bindings(),
            workgroup: self.workgroup,
        }
    }

    /// The kernel and its modules; the same name means the same text.
    fn name(&self, modules: &[&str]) -> String {
        let elements: Vec<_> = self.used_elements().iter().map(|element| element.name()).collect();
        format!(
            "{}.{}.{}.{}.{}",
            KERNEL.name,
            self.lane.module().name,
            self.data.name(),
            elements.join("_"),
            modules.join(".")
        )
    }

    fn bindings(&self) -> Vec<Binding> {
        let angles = match self.angles {
            Angles::Turns => "turns",
            Angles::Table => "table",
        };
        let read = |index, name| Binding { index, name, access: Access::Read };
        let mut bindings = vec![Binding { index: 0, name: "params", access: Access::Uniform }, read(1, angles)];
        bindings.extend(self.positions.then_some(Tensor::POSITIONS_BINDING.0));
        bindings.extend(self.data.bindings().iter().map(|(binding, _)| *binding));
        bindings.extend(self.rows.map(|_| Tensor::ROWS_BINDING.0));
        bindings
    }

    /// The element type of each of the data's bindings.
    fn used_elements(&self) -> Vec<ElementType> {
        self.data.bindings().iter().map(|(_, tensors)| self.elements.of(tensors[0])).collect()
    }

    /// The data's bindings, and how the kernel's body reaches each tensor through them.
    fn data_text(&self) -> String {
        let bindings = self.data.bindings();
        let mut text = String::new();
        for (binding, tensors) in bindings {
            let shape = if tensors[0] == Tensor::Q { "(B, T, Hq, D)" } else { "(B, T, Hk, D)" };
            text += &words::declare(*binding, self.elements.of(tensors[0]), self.lane, shape);
        }
        let reached = |tensor: Tensor| {
            let through = bindings.iter().find(|(_, tensors)| tensors.contains(&tensor));
            through.map(|(binding, _)| (*binding, self.elements.of(tensor)))
        };
        for (name, input, output) in [("q", Tensor::Q, Tensor::QOut), ("k", Tensor::K, Tensor::KOut)] {
            text += "\n";
            text += &words::load(name, reached(input), self.lane);
            text += "\n";
            text += &words::store(name, reached(output), self.lane);
            text += "\n";
            text += &words::copy(name, reached(input), reached(output), self.lane);
        }
        text
    }
}

/// Every variant, each text once: in f32 all there are; of the other types, and of the conversions into a cache, a common
/// case and one that needs all of the kernel's branches.
pub(crate) fn all() -> Vec<Shader> {
    let mut shaders = Vec::new();
    for data in [Data::One, Data::InPlace, Data::CopyQ, Data::Copy] {
        for angles in [Angles::Turns, Angles::Table] {
            for lane in [Lane::Four, Lane::One] {
                for (elements, case) in cases(data, lane) {
                    shaders.push(case.variant(data, elements, angles, lane).shader());
                }
            }
        }
    }
    shaders
}

/// What of a text its buffers, lanes and angles do not settle.
#[derive(Clone, Copy)]
struct Case {
    pairing: Pairing,
    positions: bool,
    rows: Option<Tensor>,
}

fn cases(data: Data, lane: Lane) -> Vec<(Elements, Case)> {
    use ElementType::{BF16, F16, F32};
    use Pairing::{HalfSplit, Interleaved};
    let cache = match data {
        Data::CopyQ => Some(Tensor::QOut),
        Data::Copy => Some(Tensor::KOut),
        Data::One | Data::InPlace => None,
    };
    let common = Case { pairing: HalfSplit, positions: false, rows: None };
    let full = Case { pairing: Interleaved, positions: true, rows: cache };
    let into_f16 = Elements { q: F32, q_out: F32, k: F32, k_out: F16 };
    let q_into_f16 = Elements { q_out: F16, ..into_f16 };
    // Single channels stand for pairs in either pairing.
    let pairings: &[Pairing] = if lane == Lane::Four { &[HalfSplit, Interleaved] } else { &[HalfSplit] };
    let rows: &[Option<Tensor>] = if cache.is_some() { &[None, cache] } else { &[None] };
    let mut cases = Vec::new();
    for &pairing in pairings {
        for &rows in rows {
            cases.extend([false, true].map(|positions| (Elements::all(F32), Case { pairing, positions, rows })));
        }
    }
    for element in [F16, BF16] {
        cases.extend([common, full].map(|case| (Elements::all(element), case)));
    }
    match data {
        Data::Copy => cases.extend([common, full].map(|case| (into_f16, case))),
        Data::CopyQ => cases.push((q_into_f16, full)),
        Data::One | Data::InPlace => {}
    }
    cases
}

impl Case {
    fn variant(self, data: Data, elements: Elements, angles: Angles, lane: Lane) -> Variant {
        Variant {
            data,
            elements,
            angles,
            lane,
            pairing: self.pairing,
            positions: self.positions,
            axes: self.positions && angles == Angles::Turns,
            rows: self.rows,
            batched: self.positions,
            copies: self.positions && matches!(data, Data::CopyQ | Data::Copy),
            workgroup: [16, 1, 4],
        }
    }
}

impl Tensor {
    /// Those that a rotation turns, before and after.
    const DATA: [Self; 4] = [Self::Q, Self::QOut, Self::K, Self::KOut];

    const POSITIONS_BINDING: (Binding, &'static [Self]) =
        (Binding { index: 2, name: "positions", access: Access::Read }, &[Self::Positions]);

    const ROWS_BINDING: (Binding, &'static [Self]) =
        (Binding { index: 7, name: "rows", access: Access::Read }, &[Self::Rows]);

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Q => "q",
            Self::QOut => "q.output",
            Self::K => "k",
            Self::KOut => "k.output",
            Self::Positions => "positions",
            Self::Rows => "rows",
        }
    }

    /// Elements in a word of this tensor's binding.
    fn word(self, lane: Lane) -> usize {
        match self {
            Self::Positions | Self::Rows => 1,
            _ => lane.pairs(),
        }
    }
}
