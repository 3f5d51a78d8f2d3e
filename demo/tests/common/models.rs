//! Model files for the command: the golden configs, and GGUF files made on the spot.

use gguf_rs_lib::format::{MetadataArray, MetadataValue};
use serde_json::Value;
use std::path::Path;

/// The configs of real models with what transformers makes of them.
pub fn golden() -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("../../../tests/data/rope_types.json")).expect("JSON");
    file["cases"].as_array().expect("a list").clone()
}

/// Writes a config.json.
pub fn config(path: &Path, config: &Value) {
    std::fs::write(path, config.to_string()).expect("the file is written");
}

/// A GGUF file of an architecture under construction: four layers with two heads of 16 channels.
pub struct Gguf {
    architecture: &'static str,
    values: Vec<(String, MetadataValue)>,
    tensors: Vec<(String, Vec<f32>)>,
}

impl Gguf {
    pub fn new(architecture: &'static str) -> Self {
        let named = ("general.architecture".to_owned(), MetadataValue::String(architecture.to_owned()));
        let file = Self { architecture, values: vec![named], tensors: Vec::new() };
        let file = file.count("block_count", 4).count("context_length", 8192).count("embedding_length", 32);
        file.count("attention.head_count", 2).number("rope.freq_base", 500_000.0)
    }

    pub fn with(mut self, key: &str, value: MetadataValue) -> Self {
        self.values.push((format!("{}.{key}", self.architecture), value));
        self
    }

    pub fn count(self, key: &str, n: u32) -> Self {
        self.with(key, MetadataValue::U32(n))
    }

    pub fn number(self, key: &str, x: f32) -> Self {
        self.with(key, MetadataValue::F32(x))
    }

    pub fn text(self, key: &str, text: &str) -> Self {
        self.with(key, MetadataValue::String(text.to_owned()))
    }

    pub fn list(self, key: &str, values: Vec<MetadataValue>) -> Self {
        let kind = values.first().expect("a list of something").value_type();
        let list = MetadataArray::new(kind, values).expect("a list of one type");
        self.with(key, MetadataValue::Array(Box::new(list)))
    }

    pub fn tensor(mut self, name: &str, values: &[f32]) -> Self {
        self.tensors.push((name.to_owned(), values.to_vec()));
        self
    }

    pub fn write(self, path: &Path) {
        std::fs::write(path, self.bytes()).expect("the file is written");
    }

    /// The file, version 3: counts, keys with values, the tensors' names and places, and after a gap their numbers.
    pub fn bytes(self) -> Vec<u8> {
        const ALIGNMENT: usize = 32;
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.values.len() as u64).to_le_bytes());
        for (key, value) in &self.values {
            text(&mut bytes, key);
            bytes.extend((value.value_type() as u32).to_le_bytes());
            value.write_to(&mut bytes).expect("it is in memory");
        }
        let mut data = Vec::new();
        for (name, values) in &self.tensors {
            text(&mut bytes, name);
            // One dimension, and the type of F32.
            bytes.extend(1u32.to_le_bytes());
            bytes.extend((values.len() as u64).to_le_bytes());
            bytes.extend(0u32.to_le_bytes());
            bytes.extend((data.len() as u64).to_le_bytes());
            data.extend(values.iter().flat_map(|x| x.to_le_bytes()));
            data.resize(data.len().next_multiple_of(ALIGNMENT), 0);
        }
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes.extend(data);
        bytes
    }
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}
