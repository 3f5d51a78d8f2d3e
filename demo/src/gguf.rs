//! The header of a GGUF file: its metadata, and the few tensors that belong to a rope.

use crate::failure::Failure;
use gguf_rs_lib::GGUFError;
use gguf_rs_lib::format::endian::read_u32;
use gguf_rs_lib::format::{GGUFHeader, GGUFTensorType, GGUFValueType, MetadataValue as Value, TensorInfo};
use phasor::config::{Metadata, MetadataValue, ModelRope, RopeTensors};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Keys that are known and change no rope.
const WITHOUT_EFFECT: [&str; 1] = ["rope.scaling.finetuned"];

/// More pairs than any head has.
const MOST_DIVISORS: u64 = 1 << 16;

/// Where data begins, unless the file says otherwise.
const ALIGNMENT: u64 = 32;

/// The ropes of a GGUF file, and its keys about ropes that nothing has read.
pub fn read(path: &Path) -> Result<(ModelRope, Vec<String>), Failure> {
    let file = File::open(path).map_err(|e| Failure::file(path, e))?;
    let mut file = Header::read(BufReader::new(file))
        .map_err(|e| Failure::file(path, format!("was no whole GGUF header of version 3 ({e})")))?;
    let mut divisors = |name| file.divisors(name).map_err(|e| Failure::file(path, format!("{name}: {e}")));
    let freqs = divisors("rope_freqs.weight")?;
    let factors_long = divisors("rope_factors_long.weight")?;
    let factors_short = divisors("rope_factors_short.weight")?;
    let tensors = RopeTensors {
        freqs: freqs.as_deref(),
        factors_long: factors_long.as_deref(),
        factors_short: factors_short.as_deref(),
    };
    let keys = Keys { values: &file.values, read: RefCell::default() };
    let model = ModelRope::from_gguf(&keys, tensors).map_err(|e| Failure::file(path, e))?;
    let unread = keys.unread(model.model_type());
    Ok((model, unread))
}

/// What lies before the weights, which are no concern of a rope and may be missing.
///
/// The crate's own reader of whole files refuses keys with a hyphen, and so all files of `gpt-oss` and `command-r`; its
/// readers of the parts do not.
struct Header<R> {
    reader: R,
    values: HashMap<String, Value>,
    tensors: Vec<TensorInfo>,
    /// Where the weights begin.
    data: u64,
}

impl<R: Read + Seek> Header<R> {
    fn read(mut reader: R) -> Result<Self, GGUFError> {
        let header = GGUFHeader::read_from(&mut reader)?;
        header.validate_comprehensive()?;
        let mut values = HashMap::new();
        for _ in 0..header.metadata_kv_count {
            // A key is written as a string is.
            if let Value::String(key) = Value::read_from(&mut reader, GGUFValueType::String)? {
                let kind = GGUFValueType::from_u32(read_u32(&mut reader)?)?;
                values.insert(key, Value::read_from(&mut reader, kind)?);
            }
        }
        let mut tensors = Vec::new();
        for _ in 0..header.tensor_count {
            tensors.push(TensorInfo::read_from(&mut reader)?);
        }
        let alignment = values.get("general.alignment").and_then(Value::as_u64).filter(|&n| n > 0).unwrap_or(ALIGNMENT);
        let data = reader.stream_position()?.next_multiple_of(alignment);
        Ok(Self { reader, values, tensors, data })
    }

    /// A tensor of one divisor for each pair, be it the model's or its first layer's.
    fn divisors(&mut self, name: &str) -> Result<Option<Vec<f32>>, String> {
        let wanted = |full: &str| full == name || full.strip_prefix("blk.").is_some_and(|rest| rest.ends_with(name));
        let Some(info) = self.tensors.iter().find(|info| wanted(&info.name)) else { return Ok(None) };
        if info.tensor_type != GGUFTensorType::F32 as u32 {
            return Err(format!("was of type {}, may be {} (F32)", info.tensor_type, GGUFTensorType::F32 as u32));
        }
        let count = info.dimensions.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        let Some(count) = count.filter(|&count| count <= MOST_DIVISORS) else {
            return Err(format!("was {:?}, may be at most {MOST_DIVISORS} numbers", info.dimensions));
        };
        let start = self.data.checked_add(info.offset).ok_or("was past the end of any file")?;
        self.reader.seek(SeekFrom::Start(start)).map_err(|e| e.to_string())?;
        let mut bytes = vec![0; 4 * count as usize];
        self.reader.read_exact(&mut bytes).map_err(|e| e.to_string())?;
        Ok(Some(bytes.as_chunks().0.iter().map(|&chunk| f32::from_le_bytes(chunk)).collect()))
    }
}

/// The metadata, remembering which of its keys were asked for.
struct Keys<'a> {
    values: &'a HashMap<String, Value>,
    read: RefCell<BTreeSet<String>>,
}

impl Metadata for Keys<'_> {
    fn get(&self, key: &str) -> Option<MetadataValue> {
        self.read.borrow_mut().insert(key.to_owned());
        converted(self.values.get(key)?)
    }
}

impl Keys<'_> {
    fn unread(&self, architecture: &str) -> Vec<String> {
        let read = self.read.borrow();
        let is_about_rope = |key: &&String| {
            let own = key.strip_prefix(architecture).and_then(|rest| rest.strip_prefix('.'));
            own.is_some_and(|own| own.starts_with("rope.") && !WITHOUT_EFFECT.contains(&own))
        };
        let mut unread: Vec<_> =
            self.values.keys().filter(is_about_rope).filter(|key| !read.contains(*key)).cloned().collect();
        unread.sort_unstable();
        unread
    }
}

fn converted(value: &Value) -> Option<MetadataValue> {
    match value {
        Value::Bool(flag) => Some(MetadataValue::Flag(*flag)),
        Value::String(text) => Some(MetadataValue::Text(text.clone())),
        Value::Array(list) => list.iter().map(number).collect::<Option<_>>().map(MetadataValue::Numbers),
        other => number(other).map(MetadataValue::Number),
    }
}

fn number(value: &Value) -> Option<f64> {
    Some(match *value {
        Value::U8(n) => n.into(),
        Value::I8(n) => n.into(),
        Value::U16(n) => n.into(),
        Value::I16(n) => n.into(),
        Value::U32(n) => n.into(),
        Value::I32(n) => n.into(),
        Value::U64(n) => n as f64,
        Value::I64(n) => n as f64,
        Value::F32(n) => n.into(),
        Value::F64(n) => n,
        Value::Bool(flag) => u8::from(flag).into(),
        Value::String(_) | Value::Array(_) => return None,
    })
}
