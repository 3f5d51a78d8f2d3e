//! `shaders/rope_rotate.wgsl`: its variants, its bindings and its parameters; [`Job`] plans a rotation with them.

mod plan;

pub(crate) use plan::Job;

use super::modules::{self, Lane, Module};
use crate::gpu::{Access, Binding, Shader};
use crate::{ElementType, Pairing};
use bytemuck::{Pod, Zeroable};

const KERNEL: Module = Module { name: "rope_rotate", wgsl: include_str!("../../shaders/rope_rotate.wgsl") };

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
    fn module(self) -> Module {
        match self {
            Self::One => modules::DATA_ONE,
            Self::InPlace => modules::DATA_IN_PLACE,
            Self::CopyQ => modules::DATA_COPY_Q,
            Self::Copy => modules::DATA_COPY,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tensor {
    Q,
    QOut,
    K,
    KOut,
    Positions,
}

/// Where a tensor's words lie, as the shader declares it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
struct Place {
    offset: u32,
    batch: u32,
    token: u32,
    head: u32,
    channel: u32,
    _pad: [u32; 3],
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
    start: i32,
    start_batch: i32,
    start_token: i32,
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
    _pad: [u32; 3],
}

/// What makes one variant differ from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub data: Data,
    pub angles: Angles,
    pub lane: Lane,
    pub pairing: Pairing,
    pub from_buffer: bool,
    pub batched: bool,
    pub copies: bool,
    /// Invocations to a group: lanes, groups of heads, tokens.
    pub workgroup: [u32; 3],
}

impl Variant {
    /// The finished shader.
    pub(crate) fn shader(&self) -> Shader {
        let angles: &[Module] = match self.angles {
            Angles::Turns => &[modules::TURN, modules::ANGLES_TURNS],
            Angles::Table => &[modules::TURN, modules::ANGLES_TABLE],
        };
        let positions = if self.from_buffer { modules::POSITIONS_BUFFER } else { modules::POSITIONS_NONE };
        let parts: Vec<_> = [self.lane.module(), modules::PAIRS, modules::STORE_F32, self.data.module()]
            .iter()
            .chain(angles)
            .chain([&positions, &KERNEL])
            .copied()
            .collect();
        let angles_name = match self.angles {
            Angles::Turns => "turns",
            Angles::Table => "table",
        };
        let mut bindings = vec![
            Binding { index: 0, name: "params", access: Access::Uniform },
            Binding { index: 1, name: angles_name, access: Access::Read },
        ];
        if self.from_buffer {
            bindings.push(Tensor::POSITIONS_BINDING.0);
        }
        bindings.extend(self.data.bindings().iter().map(|(binding, _)| *binding));
        let flag = |on: bool| f64::from(u8::from(on));
        let [x, y, z] = self.workgroup;
        Shader {
            name: format!(
                "{}.{}.{}.{}.{}",
                KERNEL.name,
                self.lane.module().name,
                self.data.module().name,
                angles[1].name,
                positions.name
            ),
            wgsl: Shader::compose(&parts.iter().map(|module| module.wgsl).collect::<Vec<_>>()),
            constants: vec![
                ("WG_X", x.into()),
                ("WG_Y", y.into()),
                ("WG_Z", z.into()),
                ("INTERLEAVED", flag(self.pairing == Pairing::Interleaved)),
                ("BATCHED", flag(self.batched)),
                ("COPIES", flag(self.copies)),
            ],
            bindings,
            workgroup: self.workgroup,
        }
    }
}

/// Every variant: each text in a common case, and in one that needs all of its branches.
pub(crate) fn all() -> Vec<Shader> {
    let common = |data, angles, lane, from_buffer| Variant {
        data,
        angles,
        lane,
        pairing: Pairing::HalfSplit,
        from_buffer,
        batched: false,
        copies: false,
        workgroup: [16, 1, 4],
    };
    let full = |variant| Variant { pairing: Pairing::Interleaved, batched: true, copies: true, ..variant };
    let mut shaders = Vec::new();
    for data in [Data::One, Data::InPlace, Data::CopyQ, Data::Copy] {
        for angles in [Angles::Turns, Angles::Table] {
            for lane in [Lane::Four, Lane::One] {
                for from_buffer in [false, true] {
                    let variant = common(data, angles, lane, from_buffer);
                    shaders.extend([variant.shader(), full(variant).shader()]);
                }
            }
        }
    }
    shaders
}

impl Tensor {
    /// Those that a rotation turns, before and after.
    const DATA: [Self; 4] = [Self::Q, Self::QOut, Self::K, Self::KOut];

    const POSITIONS_BINDING: (Binding, &'static [Self]) =
        (Binding { index: 2, name: "positions", access: Access::Read }, &[Self::Positions]);

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Q => "q",
            Self::QOut => "q.output",
            Self::K => "k",
            Self::KOut => "k.output",
            Self::Positions => "positions",
        }
    }

    fn element(self) -> ElementType {
        match self {
            Self::Positions => ElementType::I32,
            _ => ElementType::F32,
        }
    }

    /// Elements in a word of this tensor's binding.
    fn word(self, lane: Lane) -> usize {
        match self {
            Self::Positions => 1,
            _ => lane.pairs(),
        }
    }
}
