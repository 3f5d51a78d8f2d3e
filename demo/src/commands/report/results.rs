//! What result files hold, by device.

use super::numbers;
use crate::failure::Failure;
use phasor_measure::{AttentionSizes, Device, ProjectionSizes, Sizes, Subject};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// A device in one file, and what was measured on it.
#[derive(Debug)]
pub struct Column {
    /// The device's name; where that is not enough to tell columns apart, with its commit or date.
    pub name: String,
    pub device: Device,
    pub commit: Option<String>,
    pub date: String,
    pub measurements: Vec<Measurement>,
    pub curves: Vec<Curve>,
    pub first_results: Vec<FirstResult>,
}

/// A file, as far as it is looked at.
#[derive(Debug, Deserialize)]
struct File {
    commit: Option<String>,
    date: String,
    #[serde(default)]
    measurements: Vec<Measurement>,
    #[serde(default)]
    curves: Vec<Curves>,
    #[serde(default)]
    first_results: Vec<FirstResult>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Measurement {
    device: Device,
    subject: String,
    sizes: Value,
    pub baseline: String,
    pub operations: Vec<Operation>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Operation {
    pub name: String,
    #[serde(deserialize_with = "numbers::amount")]
    pub gigabytes_per_second: Option<f64>,
    #[serde(default, deserialize_with = "numbers::amount")]
    pub gigaflops: Option<f64>,
    #[serde(deserialize_with = "numbers::amount")]
    pub over_baseline: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Curves {
    device: Device,
    curves: Vec<Curve>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Curve {
    pub subject: String,
    pub name: String,
    pub points: Vec<Point>,
    pub time_exponent: Option<Exponent>,
    pub memory_exponent: Option<Exponent>,
    pub stopped: Option<Stop>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Point {
    pub tokens: NonZeroU32,
    #[serde(deserialize_with = "numbers::amount")]
    pub seconds: Option<f64>,
    pub memory: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Exponent {
    #[serde(deserialize_with = "numbers::power")]
    pub value: Option<f64>,
    pub from: u32,
    pub to: u32,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Stop {
    pub tokens: u32,
    pub reason: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct FirstResult {
    device: Device,
    pub work: String,
    pub shader_cache: String,
    #[serde(deserialize_with = "numbers::amount")]
    pub seconds: Option<f64>,
    pub parts: Vec<Part>,
}

/// A part's name and how long it took, in seconds.
#[derive(Debug, Clone, Deserialize)]
pub struct Part(pub String, #[serde(deserialize_with = "numbers::amount")] pub Option<f64>);

impl Measurement {
    /// What was measured; how often does not matter.
    pub fn subject(&self) -> Option<Subject> {
        self.known().ok()
    }

    /// What was measured, or what is wrong with it.
    fn known(&self) -> Result<Subject, String> {
        let attention = |sizes| AttentionSizes { rounds: 0, unfused: false, ..sizes };
        match self.subject.as_str() {
            "rotation" => self.sizes().map(|sizes| Subject::Rotation(Sizes { rounds: 0, ..sizes })),
            "attention" | "decode" => self.sizes().map(|sizes| Subject::Attention(attention(sizes))),
            "variants" => self.sizes().map(|sizes| Subject::Variants(attention(sizes))),
            "projection" => self.sizes().map(|sizes| Subject::Projection(ProjectionSizes { rounds: 0, ..sizes })),
            strange => Err(format!("a measurement of {strange:?}, which this version does not know")),
        }
    }

    fn sizes<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_path_to_error::deserialize(&self.sizes).map_err(|e| format!("sizes: {e}"))
    }

    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }
}

impl Column {
    /// Takes on what another file has; of what both have, the later file's counts.
    fn add(&mut self, more: Self) {
        let Self { measurements, curves, first_results, date, .. } = more;
        self.date = date;
        self.measurements.extend(measurements);
        self.curves.retain(|old| !curves.iter().any(|new| (&new.subject, &new.name) == (&old.subject, &old.name)));
        self.curves.extend(curves);
        self.first_results.retain(|old| {
            !first_results.iter().any(|new| (&new.work, &new.shader_cache) == (&old.work, &old.shader_cache))
        });
        self.first_results.extend(first_results);
    }

    /// The last measurement of this subject that has this operation.
    pub fn operation(&self, subject: &Subject, name: &str) -> Option<&Operation> {
        let of_subject = self.measurements.iter().filter(|measured| measured.subject().as_ref() == Some(subject));
        of_subject.rev().find_map(|measured| measured.operation(name))
    }
}

/// All devices of all files, in their order: what one device gave at one commit is a column, in however many files it lies.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Column>, Failure> {
    let mut columns: Vec<Column> = Vec::new();
    for path in paths {
        for more in of_file(path)? {
            let known = columns.iter_mut().find(|known| known.device == more.device && known.commit == more.commit);
            match known {
                Some(known) => known.add(more),
                None => columns.push(more),
            }
        }
    }
    tell_apart(&mut columns);
    Ok(columns)
}

fn of_file(path: &Path) -> Result<Vec<Column>, Failure> {
    let file = opened(path)?;
    let devices = file.first_results.iter().map(|first| &first.device);
    let devices = devices.chain(file.measurements.iter().map(|measured| &measured.device));
    let mut unique: Vec<&Device> = Vec::new();
    for device in devices.chain(file.curves.iter().map(|curves| &curves.device)) {
        if !unique.contains(&device) {
            unique.push(device);
        }
    }
    Ok(unique.into_iter().map(|device| file.column(device)).collect())
}

/// A file, or what is wrong with it and what to do.
fn opened(path: &Path) -> Result<File, Failure> {
    let foreign = |problem: String| {
        Failure::file(path, problem).next(
            "`phasor bench --json > results.json` makes a file for this; name each one, as in `phasor report *.json`",
        )
    };
    let bytes = std::fs::read(path).map_err(|e| foreign(e.to_string()))?;
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(Failure::file(path, "was UTF-16, as older versions of PowerShell write with `>`; may be UTF-8")
            .next("`phasor bench --json | Out-File -Encoding utf8 results.json` writes that")
            .next("`Get-Content old.json | Set-Content -Encoding utf8 new.json` makes it of a file that is there"));
    }
    parsed(&bytes).map_err(foreign)
}

/// What a file holds, with a byte order mark or without, or what is wrong with it.
fn parsed(bytes: &[u8]) -> Result<File, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "was not UTF-8, may be what `phasor bench --json` prints")?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err("was empty, may be what `phasor bench --json` prints".into());
    }
    // Errors name the field.
    let foreign = |problem: &dyn Display| format!("{problem}: not what `phasor bench --json` prints");
    let mut json = serde_json::Deserializer::from_str(text);
    let file: File = serde_path_to_error::deserialize(&mut json).map_err(|e| foreign(&e))?;
    json.end().map_err(|e| foreign(&e))?;
    if file.measurements.is_empty() && file.curves.is_empty() && file.first_results.is_empty() {
        return Err("holds no measurement, may be what `phasor bench --json` prints".into());
    }
    for (i, measured) in file.measurements.iter().enumerate() {
        measured.known().map_err(|problem| format!("measurements[{i}]: {problem}"))?;
    }
    Ok(file)
}

impl File {
    fn column(&self, device: &Device) -> Column {
        Column {
            name: short(&device.name),
            device: device.clone(),
            commit: self.commit.clone(),
            date: self.date.clone(),
            measurements: self.measurements.iter().filter(|measured| measured.device == *device).cloned().collect(),
            curves: self.curves.iter().filter(|all| all.device == *device).flat_map(|all| all.curves.clone()).collect(),
            first_results: self.first_results.iter().filter(|first| first.device == *device).cloned().collect(),
        }
    }
}

/// A device's name without what drivers add in brackets, which is in the list of devices.
fn short(name: &str) -> String {
    let short = name.split(" (").next().unwrap_or_default().trim_matches(|c: char| c.is_whitespace() || c.is_control());
    if short.is_empty() { "(unnamed)".to_owned() } else { short.to_owned() }
}

/// Adds the commit to names that are there more than once, and the date where that does not help.
fn tell_apart(columns: &mut [Column]) {
    let additions: [fn(&Column) -> Option<String>; 2] =
        [|column| column.commit.clone(), |column| Some(column.date.clone())];
    for addition in additions {
        let names: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
        let twice = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
        for column in columns.iter_mut().filter(|column| twice(&column.name)) {
            if let Some(more) = addition(column) {
                column.name = format!("{} {more}", column.name);
            }
        }
    }
}
