//! One file for each subcommand: its options and what it does.

pub mod attention;
pub mod bench;
pub mod cope;
pub mod demo;
pub mod explain;
pub mod info;
pub mod report;
pub mod rotate;
pub mod shaders;
pub mod tables;
pub mod verify;
