//! Luminal 0.2, the seed: its generic and CPU compilers, weights kept, shapes known when this compiles.
mod common;
use common::{inputs, matrix, number, vector, Run};
use luminal::prelude::*;
use serde_json::Value;

/// A compiled graph and its output, run again and again. The graph stays where it is: tensors point to it.
fn runner<S: Shape + 'static>(mut cx: Box<Graph>, y: GraphTensor<S>) -> Run {
    let mut y = y.retrieve();
    cx.compile(<(GenericCompiler, CPUCompiler)>::default(), &mut y);
    Box::new(move |wanted| {
        y.drop(); // what is still there would not be computed again
        cx.execute();
        wanted.then(|| y.data())
    })
}

fn leaf<S: ConstShape>(cx: &mut Graph, values: Vec<f32>) -> GraphTensor<S>
where
    Vec<f32>: ToData<S, Vec<f32>>,
{
    cx.tensor::<S>().set(values).keep()
}

// Products carry a batch of one: 0.2.0 recognises those as matrix products, while its rule for plain ones looks for a
// sum over axis 0 where `matmul` sums over axis 2, and never fires.
fn gemm<const N: usize>() -> Run {
    let mut cx = Box::new(Graph::new());
    let x = leaf::<R3<1, N, N>>(&mut cx, inputs("x", N * N, 1.0));
    let w = leaf::<R2<N, N>>(&mut cx, matrix("w", N, N));
    runner(cx, x.matmul(w))
}

fn mlp<const B: usize>() -> Run {
    fn dense<const B: usize, const K: usize, const N: usize>(
        cx: &mut Graph,
        x: GraphTensor<R3<1, B, K>>,
        name: &str,
    ) -> GraphTensor<R3<1, B, N>> {
        let w = leaf::<R2<K, N>>(cx, matrix(&format!("{name}.weight"), N, K));
        let b = leaf::<R1<N>>(cx, vector(&format!("{name}.bias"), N));
        x.matmul(w) + b.expand::<R3<1, B, N>, Axes2<0, 1>>()
    }
    let mut cx = Box::new(Graph::new());
    let x = leaf::<R3<1, B, 784>>(&mut cx, inputs("x", B * 784, 1.0));
    let x = dense::<B, 784, 512>(&mut cx, x, "fc1").relu();
    let x = dense::<B, 512, 512>(&mut cx, x, "fc2").relu();
    let y = dense::<B, 512, 10>(&mut cx, x, "fc3");
    runner(cx, y)
}

fn fused(op: &str) -> Result<Run, String> {
    const N: usize = 4096;
    type T = GraphTensor<R2<N, N>>;
    let mut cx = Box::new(Graph::new());
    let x: T = leaf(&mut cx, inputs("x", N * N, 3.0));
    let row = |cx: &mut Graph, name: &str| -> T { leaf::<R1<N>>(cx, vector(name, N)).expand::<R2<N, N>, Axis<0>>() };
    let y = match op {
        "softmax" => x.softmax::<1>(),
        "chain" => (x * row(&mut cx, "w") + row(&mut cx, "b")).relu() * 2.0 + x,
        "layernorm" => x.layer_norm::<1, f32>(1e-5) * row(&mut cx, "norm.weight") + row(&mut cx, "norm.bias"),
        _ => return Err("Luminal 0.2 has no erf, so no such gelu".into()),
    };
    Ok(runner(cx, y))
}

fn make(w: &Value) -> Result<Run, String> {
    match w["kind"].as_str().unwrap_or("") {
        "scalar" => {
            let mut cx = Box::new(Graph::new());
            let a = leaf::<R1<1>>(&mut cx, inputs("a", 1, 1.0));
            let b = leaf::<R1<1>>(&mut cx, inputs("b", 1, 1.0));
            Ok(runner(cx, a + b))
        }
        "gemm" => match (w["dtype"].as_str(), number(w, "n")) {
            (Some("f32"), 512) => Ok(gemm::<512>()),
            (Some("f32"), 1024) => Ok(gemm::<1024>()),
            (Some("f32"), 2048) => Ok(gemm::<2048>()),
            (Some("f32"), 4096) => Ok(gemm::<4096>()),
            _ => Err("f32 products of 512, 1024, 2048 and 4096 only".into()),
        },
        "mlp" => match number(w, "batch") {
            1 => Ok(mlp::<1>()),
            128 => Ok(mlp::<128>()),
            _ => Err("batches of 1 and 128 only".into()),
        },
        "fused" if number(w, "rows") == 4096 && number(w, "columns") == 4096 => fused(w["op"].as_str().unwrap_or("")),
        other => Err(format!("no runner for {other}")),
    }
}

fn main() {
    common::serve("luminal 0.2.0", make);
}
