//! `phasor report`: results of several devices side by side.

mod common;

use common::{Scratch, refused, well};
use serde_json::{Value, json};

fn device(name: &str) -> Value {
    json!({ "name": name, "backend": "vulkan", "driver": "a driver 1.2", "kind": "discrete GPU", "software": false })
}

fn operation(name: &str, over_baseline: f64, gigaflops: Option<f64>) -> Value {
    json!({ "name": name, "gigabytes_per_second": 123.45, "gigaflops": gigaflops, "over_baseline": over_baseline })
}

/// A file as `phasor bench --json` prints it, as far as it is looked at.
fn results(name: &str, commit: &str, ratio: f64) -> Value {
    let rotation = json!({ "tokens": 2048, "heads": 32, "kv_heads": 8, "head_dim": 128, "rounds": 30 });
    let attention = json!({
        "tokens": 512, "keys": 512, "heads": 8, "kv_heads": 8, "head_dim": 64, "positions": 64, "rounds": 10, "unfused": true
    });
    let layer = json!({ "tokens": 512, "inputs": 64, "outputs": 96, "rounds": 10 });
    let measured = |subject: &str, sizes: Value, baseline: &str, operations: Value| json!({ "device": device(name), "subject": subject, "sizes": sizes, "baseline": baseline, "operations": operations });
    let curve = |name: &str, power: f64, stopped: Value| {
        let points = [128u32, 256, 512, 1024].map(
            |n| json!({ "tokens": n, "seconds": 1e-6 * f64::from(n).powf(power), "memory": 1000 * n, "dispatches": 1 }),
        );
        let exponent = |value: f64| json!({ "value": value, "from": 128, "to": 1024 });
        json!({
            "subject": "attention", "name": name, "points": points, "time_exponent": exponent(power),
            "memory_exponent": exponent(1.0), "stopped": stopped
        })
    };
    json!({
        "version": "0.1.0",
        "commit": commit,
        "date": "2026-12-24T18:00:00Z",
        "first_results": [{
            "device": device(name), "work": "rotation", "shader_cache": "cold", "seconds": 0.75,
            "parts": [["process", 0.25], ["adapter", 0.5]]
        }],
        "measurements": [
            measured("rotation", rotation, "the fastest copy", json!([
                operation("copy, flat", 1.0, None), operation("rotation, half-split, table", ratio, None)
            ])),
            measured("attention", attention, "fused, plain", json!([
                operation("matrix product", 0.8, Some(2000.0)), operation("fused, plain", 1.0, Some(1500.0))
            ])),
            measured("projection", layer, "the schedule that is chosen", json!([
                operation("linear, by tiles", 1.0, Some(900.0))
            ])),
        ],
        "curves": [{
            "device": device(name), "clock": "device",
            "curves": [curve("fused, plain", 1.97, Value::Null), curve("fused, CoPE", 1.5, json!({
                "tokens": 2048, "reason": "no room"
            }))]
        }],
    })
}

fn write(scratch: &Scratch, file: &str, results: &Value) {
    std::fs::write(scratch.at(file), results.to_string()).unwrap();
}

#[test]
fn devices_are_columns_and_operations_are_rows() {
    let scratch = Scratch::new();
    write(&scratch, "a.json", &results("Alpha (rev 3)", "abc123", 1.0416));
    write(&scratch, "b.json", &results("Beta", "abc123", 1.25));
    let text = well(scratch.path(), &["report", "a.json", "b.json"]);
    for line in [
        "| Alpha | Alpha (rev 3) | discrete GPU | vulkan, a driver 1.2 | abc123 | 2026-12-24 |",
        "### Rotation: 2048 tokens, 32 + 8 heads of 128 channels, f32 in place",
        "| operation | Alpha | Beta |",
        "|---|---:|---:|",
        "| rotation, half-split, table | 1.04 (123.5 GB/s) | 1.25 (123.5 GB/s) |",
        "| matrix product | 0.80 (2000.0 GFLOP/s) | 0.80 (2000.0 GFLOP/s) |",
        "| rate of *fused, plain* ÷ matrix product | 75 % | 75 % |",
        "### Projection: 512 tokens, 64 inputs to 96 outputs, f32",
        "### First result: rotation, cold shader cache",
        "| all | 750.00 ms | 750.00 ms |",
        "| attention, fused, plain | n^1.97 | n^1.00 | 128 to 1024 | 1024 | 851.71 ms | 1000.0 KiB |  |",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
    }
    assert!(text.contains("before 2048: no room |"), "{text}");
    assert!(!text.contains("rate of *fused, CoPE*"), "nobody measured it: {text}");
}

#[test]
fn a_device_s_results_at_two_commits_are_told_apart() {
    let scratch = Scratch::new();
    write(&scratch, "old.json", &results("Alpha", "abc123", 1.5));
    write(&scratch, "new.json", &results("Alpha", "def456", 1.1));
    let text = well(scratch.path(), &["report", "old.json", "new.json"]);
    assert!(text.contains("| operation | Alpha abc123 | Alpha def456 |"), "{text}");
    // At one commit it is one column, and the later file's counts.
    write(&scratch, "again.json", &results("Alpha", "abc123", 1.25));
    let text = well(scratch.path(), &["report", "old.json", "again.json"]);
    assert_eq!(text, well(scratch.path(), &["report", "again.json"]));
}

/// Neither an input is written over, nor one picture where the other one cannot be drawn.
#[test]
fn a_report_writes_all_or_nothing() {
    let scratch = Scratch::new();
    let all = results("Alpha", "abc123", 1.5);
    write(&scratch, "a.json", &all);
    refused(scratch.path(), &["report", "a.json", "--ratios", "a.json"], 1, &["a.json", "another file"]);
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(scratch.at("a.json")).unwrap()).unwrap();
    assert_eq!(kept, all);
    let mut without = all;
    without["curves"] = json!([]);
    write(&scratch, "b.json", &without);
    let both = ["report", "b.json", "--ratios", "r.svg", "--curves", "c.svg"];
    refused(scratch.path(), &both, 1, &["c.svg", "bench curve --json"]);
    assert!(!scratch.at("r.svg").exists());
}

/// Every operation, ratio and power is in the picture, as text or as a place.
#[test]
fn pictures_are_svg_with_a_dot_for_each_ratio_and_a_line_for_each_curve() {
    let scratch = Scratch::new();
    write(&scratch, "a.json", &results("Alpha", "abc123", 1.0));
    write(&scratch, "b.json", &results("Beta", "abc123", 4.0));
    well(scratch.path(), &["report", "a.json", "b.json", "--ratios", "ratios.svg", "--curves", "curves.svg"]);
    let [ratios, curves] = ["ratios.svg", "curves.svg"].map(|file| std::fs::read_to_string(scratch.at(file)).unwrap());
    for svg in [&ratios, &curves] {
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        // No background: pages may be light or dark.
        assert!(!svg.contains("<rect"), "{svg}");
    }
    for word in ["Alpha", "Beta", "rotation, half-split, table", "matrix product", "÷ the fastest copy"] {
        assert!(ratios.contains(word), "{word} in {ratios}");
    }
    // Five operations on two devices, and a dot each in the legend.
    assert_eq!(ratios.matches("<circle").count(), 5 * 2 + 2, "{ratios}");
    let place = |svg: &str, nth: usize| {
        let circle = svg.split("<circle ").nth(nth + 1).unwrap();
        circle.split("cx=\"").nth(1).unwrap().split('"').next().unwrap().parse::<i32>().unwrap()
    };
    // The second operation: 1 on the one device, 4 on the other, farther to the right.
    assert!(place(&ratios, 4) < place(&ratios, 5), "{ratios}");
    assert!(curves.contains("attention, fused, plain: time n^1.97, memory n^1.00, from 128 tokens on"), "{curves}");
    // Two devices, two panels, two curves of four points, and the legend.
    assert_eq!(curves.matches("<circle").count(), 2 * (2 * 2 * 4 + 2), "{curves}");
}

#[test]
fn what_is_no_result_is_refused_by_name() {
    let scratch = Scratch::new();
    refused(scratch.path(), &["report", "none.json"], 1, &["none.json"]);
    std::fs::write(scratch.at("other.json"), "{\"date\": 3}").unwrap();
    refused(scratch.path(), &["report", "other.json"], 1, &["other.json", "phasor bench --json"]);
    let mut strange = results("Alpha", "abc123", 1.0);
    strange["measurements"][0]["subject"] = "juggling".into();
    write(&scratch, "strange.json", &strange);
    refused(scratch.path(), &["report", "strange.json"], 1, &["strange.json", "juggling"]);
    let mut empty = results("Alpha", "abc123", 1.0);
    empty["curves"] = json!([]);
    write(&scratch, "empty.json", &empty);
    refused(scratch.path(), &["report", "empty.json", "--curves", "c.svg"], 1, &["c.svg", "phasor bench curve --json"]);
    assert!(!scratch.at("c.svg").exists());
    let nothing = json!({ "date": "2026-01-01T00:00:00Z", "comparisons": [] });
    write(&scratch, "peers.json", &nothing);
    refused(scratch.path(), &["report", "peers.json"], 1, &["peers.json", "holds no measurement", "next:"]);
    refused(scratch.path(), &["report"], 2, &["FILE"]);
}

/// A field of a file, by its JSON pointer, that is something else.
fn with(pointer: &str, value: Value) -> Value {
    let mut results = results("Alpha", "abc123", 1.5);
    *results.pointer_mut(pointer).expect(pointer) = value;
    results
}

/// Every kind of number: pictures need not end for impossible ones, and tables would tell nonsense.
#[test]
fn numbers_that_nothing_can_have_are_refused_by_their_field() {
    let scratch = Scratch::new();
    let amounts = [
        ("measurements[0].operations[1].over_baseline", "/measurements/0/operations/1/over_baseline"),
        ("measurements[0].operations[1].gigabytes_per_second", "/measurements/0/operations/1/gigabytes_per_second"),
        ("measurements[1].operations[0].gigaflops", "/measurements/1/operations/0/gigaflops"),
        ("first_results[0].seconds", "/first_results/0/seconds"),
        ("first_results[0].parts[1][1]", "/first_results/0/parts/1/1"),
        ("curves[0].curves[0].points[0].seconds", "/curves/0/curves/0/points/0/seconds"),
    ];
    let impossible = [("-1.0", -1.0), ("1e308", 1e308), ("1e-300", 1e-300), ("1e-320", 1e-320)];
    let impossible_amounts = amounts.iter().flat_map(|&field| impossible.map(|(told, x)| (field, told, json!(x))));
    let others = [
        (("points[0].tokens", "/curves/0/curves/0/points/0/tokens"), "`0`", json!(0)),
        (("points[0].memory", "/curves/0/curves/0/points/0/memory"), "`1e-300`", json!(1e-300)),
        (("time_exponent.value", "/curves/0/curves/0/time_exponent/value"), "1e300", json!(1e300)),
        (("measurements[0]: sizes: tokens", "/measurements/0/sizes/tokens"), "`-1`", json!(-1)),
        (("measurements[1]: sizes: keys", "/measurements/1/sizes/keys"), "\"x\"", json!("x")),
        (("measurements[2]: sizes: outputs", "/measurements/2/sizes/outputs"), "null", Value::Null),
    ];
    for ((field, pointer), told, value) in impossible_amounts.chain(others) {
        write(&scratch, "a.json", &with(pointer, value));
        let args = ["report", "a.json", "--ratios", "r.svg", "--curves", "c.svg"];
        refused(scratch.path(), &args, 1, &["a.json", field, told]);
    }
    // One file after the other in one.
    std::fs::write(scratch.at("two.json"), results("Alpha", "abc123", 1.0).to_string().repeat(2)).unwrap();
    refused(scratch.path(), &["report", "two.json"], 1, &["two.json", "trailing"]);
}

/// A clock that is coarser than an operation gives 0 seconds, a rate without end, and a ratio of either.
#[test]
fn what_a_coarse_clock_could_not_tell_is_a_dash_and_no_dot() {
    let scratch = Scratch::new();
    let args = ["report", "a.json", "--ratios", "r.svg", "--curves", "c.svg"];
    let dots = |file: &str| std::fs::read_to_string(scratch.at(file)).unwrap().matches("<circle").count();
    for nothing in [json!(0), json!(0.0), Value::Null] {
        write(&scratch, "a.json", &with("/measurements/0/operations/1/over_baseline", nothing.clone()));
        let text = well(scratch.path(), &args);
        assert!(text.contains("| rotation, half-split, table | – (123.5 GB/s) |\n"), "{text}");
        // Four of five operations, and the legend.
        assert_eq!(dots("r.svg"), 4 + 1, "{nothing}");
        write(&scratch, "a.json", &with("/measurements/0/operations/1/gigabytes_per_second", nothing.clone()));
        assert!(well(scratch.path(), &args).contains("| rotation, half-split, table | 1.50 |\n"));
        write(&scratch, "a.json", &with("/curves/0/curves/0/points/3/seconds", nothing.clone()));
        assert!(well(scratch.path(), &args).contains("| 128 to 1024 | 1024 | – | 1000.0 KiB |"));
        assert_eq!(dots("c.svg"), 2 * 2 * 4 + 2 - 1, "{nothing}");
        write(&scratch, "a.json", &with("/first_results/0/parts/0/1", nothing));
        assert!(well(scratch.path(), &args).contains("| process | – |\n"));
    }
    // What has no ratio at all is no picture.
    let mut none = with("/curves/0/curves", json!([]));
    for measured in none["measurements"].as_array_mut().unwrap() {
        for operation in measured["operations"].as_array_mut().unwrap() {
            operation["over_baseline"] = Value::Null;
        }
    }
    write(&scratch, "a.json", &none);
    refused(scratch.path(), &["report", "a.json", "--ratios", "none.svg"], 1, &["none.svg", "nothing to draw"]);
    // A panel without a place says so.
    let mut none = results("Alpha", "abc123", 1.0);
    for curve in none["curves"][0]["curves"].as_array_mut().unwrap() {
        for point in curve["points"].as_array_mut().unwrap() {
            point["memory"] = 0.into();
        }
    }
    write(&scratch, "a.json", &none);
    well(scratch.path(), &args);
    assert!(std::fs::read_to_string(scratch.at("c.svg")).unwrap().contains("Alpha: memory: no number above 0"));
}

/// All that may be read can be drawn, in as many marks as there is room for.
#[test]
fn scales_hold_the_least_and_the_largest_number() {
    let scratch = Scratch::new();
    let mut all = with("/measurements/0/operations/1/over_baseline", json!(1e15));
    all["measurements"][0]["operations"][0]["over_baseline"] = json!(1e-12);
    let points = &mut all["curves"][0]["curves"][0]["points"];
    points[0] = json!({ "tokens": 1, "seconds": 1e-12, "memory": 1 });
    points[1] = json!({ "tokens": u32::MAX, "seconds": 1e15, "memory": u64::MAX });
    write(&scratch, "a.json", &all);
    well(scratch.path(), &["report", "a.json", "--ratios", "r.svg", "--curves", "c.svg"]);
    for file in ["r.svg", "c.svg"] {
        let svg = std::fs::read_to_string(scratch.at(file)).unwrap();
        assert!(svg.len() < 100_000, "{file}: {} bytes", svg.len());
    }
}

/// Whatever a driver or a system calls things: a table keeps its cells, a page its elements, a picture its XML.
#[test]
fn names_are_text_and_neither_cells_nor_elements() {
    let scratch = Scratch::new();
    let odd = "a|b\\|c\r\n<i>\u{0}\u{1b}";
    let mut all = results(odd, "abc123", 1.0);
    for pointer in [
        "/commit",
        "/date",
        "/measurements/0/baseline",
        "/measurements/0/operations/1/name",
        "/first_results/0/work",
        "/first_results/0/shader_cache",
        "/first_results/0/parts/0/0",
        "/curves/0/curves/0/name",
        "/curves/0/curves/1/subject",
        "/curves/0/curves/1/stopped/reason",
    ] {
        *all.pointer_mut(pointer).expect(pointer) = odd.into();
    }
    for part in ["first_results", "measurements", "curves"] {
        for measured in all[part].as_array_mut().unwrap() {
            measured["device"]["driver"] = odd.into();
            measured["device"]["kind"] = odd.into();
        }
    }
    write(&scratch, "a.json", &all);
    let text = well(scratch.path(), &["report", "a.json", "--ratios", "r.svg", "--curves", "c.svg"]);
    assert!(text.contains(r"| a\|b\\\|c  &lt;i>"), "{text}");
    assert!(!text.contains('<') && !text.contains(|c: char| c != '\n' && c.is_control()), "{text}");
    let cells = |line: &str| line.replace(r"\\", "").replace(r"\|", "").matches('|').count();
    for table in text.split("\n\n").filter(|part| part.starts_with('|')) {
        let counts: Vec<_> = table.lines().filter(|line| !line.starts_with('#')).map(cells).collect();
        assert!(counts.iter().all(|&count| count == counts[0]), "{counts:?} in {table}");
    }
    for file in ["r.svg", "c.svg"] {
        let svg = std::fs::read_to_string(scratch.at(file)).unwrap();
        assert!(svg.contains("&lt;i&gt;") && !svg.contains("<i>"), "{svg}");
        assert!(!svg.contains(|c: char| c != '\n' && c.is_control()), "{svg}");
    }
}

#[test]
fn a_device_without_a_name_has_a_column_all_the_same() {
    let scratch = Scratch::new();
    for name in ["", " (rev 3)", " \n", "\u{0}"] {
        write(&scratch, "a.json", &results(name, "abc123", 1.0));
        let text = well(scratch.path(), &["report", "a.json"]);
        assert!(text.contains("| operation | (unnamed) |"), "{name:?}: {text}");
    }
}

/// What shells of Windows make of `>`.
#[test]
fn a_byte_order_mark_is_passed_over_and_utf_16_refused() {
    let scratch = Scratch::new();
    let text = results("Alpha", "abc123", 1.0).to_string();
    std::fs::write(scratch.at("plain.json"), &text).unwrap();
    std::fs::write(scratch.at("marked.json"), format!("\u{feff}{text}")).unwrap();
    let [plain, marked] = ["plain.json", "marked.json"].map(|file| well(scratch.path(), &["report", file]));
    assert_eq!(plain, marked);
    let units = || format!("\u{feff}{text}").encode_utf16().collect::<Vec<_>>();
    let little: Vec<u8> = units().iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = units().iter().flat_map(|unit| unit.to_be_bytes()).collect();
    for bytes in [little, big] {
        std::fs::write(scratch.at("wide.json"), bytes).unwrap();
        refused(scratch.path(), &["report", "wide.json"], 1, &["wide.json", "UTF-16", "-Encoding utf8"]);
    }
    std::fs::write(scratch.at("latin.json"), b"{\"date\": \"\xe9\"}").unwrap();
    refused(scratch.path(), &["report", "latin.json"], 1, &["latin.json", "not UTF-8"]);
}

/// The second picture would take the first one's place.
#[test]
fn two_pictures_are_two_files() {
    let scratch = Scratch::new();
    write(&scratch, "a.json", &results("Alpha", "abc123", 1.0));
    std::fs::create_dir(scratch.at("sub")).unwrap();
    for same in ["x.svg", "./x.svg", "sub/../x.svg", scratch.at("x.svg").to_str().unwrap()] {
        let args = ["report", "a.json", "--ratios", "x.svg", "--curves", same];
        refused(scratch.path(), &args, 1, &[same, "two outputs"]);
        assert!(!scratch.at("x.svg").exists());
    }
    well(scratch.path(), &["report", "a.json", "--ratios", "x.svg", "--curves", "sub/x.svg"]);
    refused(
        scratch.path(),
        &["report", "a.json", "--ratios", "x.svg", "--curves", "sub/../x.svg"],
        1,
        &["two outputs"],
    );
}

/// What is kept in the repository can be read.
#[test]
fn results_in_the_repository_are_read() {
    let results = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/results");
    let files: Vec<_> = std::fs::read_dir(&results).unwrap().map(|entry| entry.unwrap().path()).collect();
    let files = files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let files: Vec<_> = files.map(|path| path.to_str().unwrap()).collect();
    let text = well(&results, &[&["report"], &files[..]].concat());
    assert!(text.contains("| rotation, half-split, table |"), "{text}");
}
