//! dfdx 0.13, the seed: eager, f32, its CPU device (the `gemm` crate on rayon's threads).
mod common;
use common::{inputs, matrix, number, vector, Run};
use dfdx::prelude::*;
use serde_json::Value;

type Matrix = Tensor<(usize, usize), f32, Cpu>;
type Row = Tensor<(usize,), f32, Cpu>;

fn dense(x: Matrix, w: &Matrix, b: &Row) -> Matrix {
    let y = x.matmul(w.clone());
    let shape = *y.shape();
    y + b.clone().broadcast_like::<_, Axis<0>>(&shape)
}

fn make(w: &Value) -> Result<Run, String> {
    let dev = Cpu::default();
    let mat = |v: Vec<f32>, r: usize, c: usize| -> Matrix { dev.tensor_from_vec(v, (r, c)) };
    let row = |name: &str, n: usize| -> Row { dev.tensor_from_vec(vector(name, n), (n,)) };
    let result = |y: Matrix, wanted: bool| wanted.then(|| y.as_vec());
    match w["kind"].as_str().unwrap_or("") {
        "scalar" => {
            let a: Row = dev.tensor_from_vec(inputs("a", 1, 1.0), (1,));
            let b: Row = dev.tensor_from_vec(inputs("b", 1, 1.0), (1,));
            Ok(Box::new(move |wanted| {
                let y = a.clone() + b.clone();
                wanted.then(|| y.as_vec())
            }))
        }
        "gemm" => {
            if w["dtype"] != "f32" {
                return Err("f32 products only".into());
            }
            let n = number(w, "n");
            let (x, wt) = (mat(inputs("x", n * n, 1.0), n, n), mat(matrix("w", n, n), n, n));
            Ok(Box::new(move |wanted| result(x.clone().matmul(wt.clone()), wanted)))
        }
        "mlp" => {
            let batch = number(w, "batch");
            let x = mat(inputs("x", batch * 784, 1.0), batch, 784);
            let sizes = [784, 512, 512, 10];
            let layers: Vec<(Matrix, Row)> = (0..3)
                .map(|i| {
                    let (k, n) = (sizes[i], sizes[i + 1]);
                    let name = format!("fc{}", i + 1);
                    (mat(matrix(&format!("{name}.weight"), n, k), k, n), row(&format!("{name}.bias"), n))
                })
                .collect();
            Ok(Box::new(move |wanted| {
                let y = dense(x.clone(), &layers[0].0, &layers[0].1).relu();
                let y = dense(y, &layers[1].0, &layers[1].1).relu();
                result(dense(y, &layers[2].0, &layers[2].1), wanted)
            }))
        }
        "fused" => {
            let (rows, columns) = (number(w, "rows"), number(w, "columns"));
            let x = mat(inputs("x", rows * columns, 3.0), rows, columns);
            let shape = (rows, columns);
            let (weight, bias) = (row("norm.weight", columns), row("norm.bias", columns));
            let (cw, cb) = (row("w", columns), row("b", columns));
            let norm = move |x: Matrix| {
                x.normalize::<Axis<1>>(1e-5) * weight.clone().broadcast_like::<_, Axis<0>>(&shape)
                    + bias.clone().broadcast_like::<_, Axis<0>>(&shape)
            };
            match w["op"].as_str().unwrap_or("") {
                "gelu" => Ok(Box::new(move |q| result(x.clone().accurate_gelu(), q))),
                "softmax" => Ok(Box::new(move |q| result(x.clone().softmax::<Axis<1>>(), q))),
                "layernorm" => Ok(Box::new(move |q| result(norm(x.clone()), q))),
                "ln_gelu_softmax" => Ok(Box::new(move |q| {
                    result(norm(x.clone()).accurate_gelu().softmax::<Axis<1>>(), q)
                })),
                "chain" => Ok(Box::new(move |q| {
                    let y = x.clone() * cw.clone().broadcast_like::<_, Axis<0>>(&shape)
                        + cb.clone().broadcast_like::<_, Axis<0>>(&shape);
                    result(y.relu() * 2.0 + x.clone(), q)
                })),
                other => Err(format!("no runner for {other}")),
            }
        }
        other => Err(format!("no runner for {other}: convolutions need a nightly compiler")),
    }
}

fn main() {
    common::serve("dfdx 0.13.0", make);
}
