// What the two runners share: the numbers of bench/runner/protocol.h and the protocol of bench/runner/protocol.cpp.
use serde_json::{json, Value};
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

pub fn uniform(name: &str, count: usize) -> Vec<f32> {
    let seed = name
        .bytes()
        .fold(2166136261u32, |h, c| (h ^ c as u32).wrapping_mul(16777619));
    (0..count as u32)
        .map(|i| {
            let mut h = i.wrapping_mul(0x9E3779B1).wrapping_add(seed);
            h = (h ^ (h >> 16)).wrapping_mul(0x7FEB352D);
            h = (h ^ (h >> 15)).wrapping_mul(0x846CA68B);
            h ^= h >> 16;
            (h >> 8) as f32 * 2f32.powi(-23) - 1.0
        })
        .collect()
}

pub fn inputs(name: &str, count: usize, scale: f32) -> Vec<f32> {
    uniform(name, count).into_iter().map(|v| v * scale).collect()
}

pub fn vector(name: &str, count: usize) -> Vec<f32> {
    let one = if name.ends_with("norm.weight") { 1.0 } else { 0.0 };
    uniform(name, count).into_iter().map(|v| v * 0.1 + one).collect()
}

/// The parameter [rows, columns] of the rule, transposed: [columns, rows], as x.matmul(w) wants it.
pub fn matrix(name: &str, rows: usize, columns: usize) -> Vec<f32> {
    let scale = (6.0 / columns as f32).sqrt();
    let v = uniform(name, rows * columns);
    let mut t = vec![0.0; v.len()];
    for r in 0..rows {
        for c in 0..columns {
            t[c * rows + r] = v[r * columns + c] * scale;
        }
    }
    t
}

fn summary(v: &[f32]) -> Value {
    let square: f64 = v.iter().map(|&x| x as f64 * x as f64).sum();
    let samples: Vec<f32> = (0..32usize).map(|k| v[k * 2654435761 % v.len()]).collect();
    json!({"count": v.len(), "rms": (square / v.len() as f64).sqrt(), "samples": samples})
}

/// `run` computes once; it gives the answer when that is asked for.
pub type Run = Box<dyn FnMut(bool) -> Option<Vec<f32>>>;
pub type Make = fn(&Value) -> Result<Run, String>;

pub fn number(w: &Value, key: &str) -> usize {
    w[key].as_u64().unwrap_or(0) as usize
}

fn go(run: &mut Run, slice: Duration) -> Value {
    let begin = Instant::now();
    run(false);
    let one = begin.elapsed();
    if one > slice {
        return json!({"s": one.as_secs_f64(), "calls": 1});
    }
    let begin = Instant::now();
    while begin.elapsed() < slice.min(Duration::from_millis(120)) / 4 {
        run(false);
    }
    let (mut calls, begin) = (0u32, Instant::now());
    while calls == 0 || begin.elapsed() < slice {
        run(false);
        calls += 1;
    }
    json!({"s": begin.elapsed().as_secs_f64() / calls as f64, "calls": calls})
}

pub fn serve(version: &str, make: Make) {
    let mut run: Option<Run> = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (command, rest) = line.split_once(' ').unwrap_or((&line, "{}"));
        let o: Value = serde_json::from_str(rest).unwrap_or(Value::Null);
        let reply = match command {
            "quit" => break,
            "load" => {
                let begin = Instant::now();
                match make(&o) {
                    Err(why) => json!({ "missing": why }),
                    Ok(mut made) => {
                        let build = begin.elapsed().as_secs_f64();
                        let answer = made(true).unwrap_or_default();
                        let first = begin.elapsed().as_secs_f64() - build;
                        run = Some(made);
                        json!({"ok": true, "version": version, "build_s": build, "first_s": first,
                               "answer": summary(&answer), "facts": {}, "peak_rss": null})
                    }
                }
            }
            _ => match &mut run {
                Some(r) => {
                    let slice = Duration::from_secs_f64(o["seconds"].as_f64().unwrap_or(0.2));
                    let mut said = go(r, slice);
                    said["peak_rss"] = Value::Null;
                    said
                }
                None => json!({"missing": "nothing is loaded"}),
            },
        };
        println!("{reply}");
        let _ = std::io::stdout().flush();
    }
}
