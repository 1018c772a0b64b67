// Quantised types: numbers are scale * (stored - zero point), with one scale or one for each place along an axis.
func.func @main() {
  %x = stablehlo.constant dense<[[-1.0, 0.26, 0.74], [0.125, 3.0, -70.0]]> : tensor<2x3xf32>
  %q = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>
  %d = stablehlo.uniform_dequantize %q : (tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x3xf32>
  check.expect_eq_const %d, dense<[[-1.0, 0.5, 0.5], [0.0, 3.0, -65.5]]> : tensor<2x3xf32>
  %sum = stablehlo.add %q, %q : tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>
  %twice = stablehlo.uniform_dequantize %sum : (tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x3xf32>
  check.expect_eq_const %twice, dense<[[-2.0, 1.0, 1.0], [0.0, 6.0, -65.5]]> : tensor<2x3xf32>
  %moved = stablehlo.transpose %q, dims = [1, 0] : (tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<3x2x!quant.uniform<i8:f32, 0.5:3>>
  %coarse = stablehlo.uniform_quantize %moved : (tensor<3x2x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<3x2x!quant.uniform<u8<0:100>:f32, 1.0:50>>
  %numbers = stablehlo.uniform_dequantize %coarse : (tensor<3x2x!quant.uniform<u8<0:100>:f32, 1.0:50>>) -> tensor<3x2xf32>
  check.expect_eq_const %numbers, dense<[[-1.0, 0.0], [0.0, 3.0], [0.0, -50.0]]> : tensor<3x2xf32>
  %weight = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.25:-1, 2.0}>>
  %columns = stablehlo.uniform_dequantize %weight : (tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.25:-1, 2.0}>>) -> tensor<2x3xf32>
  check.expect_eq_const %columns, dense<[[-1.0, 0.25, 0.0], [0.0, 3.0, -70.0]]> : tensor<2x3xf32>
  %mixed = stablehlo.dot_general %x, %moved, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x2xf32>
  check.expect_almost_eq_const %mixed, dense<[[1.5, -47.69], [-33.625, 4594.0]]> : tensor<2x2xf32>
  %product = call @product(%q, %moved) : (tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>, tensor<3x2x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x2x!quant.uniform<i32:f32, 0.25>>
  %exact = stablehlo.uniform_dequantize %product : (tensor<2x2x!quant.uniform<i32:f32, 0.25>>) -> tensor<2x2xf32>
  check.expect_eq_const %exact, dense<[[1.5, -31.25], [-31.25, 4299.25]]> : tensor<2x2xf32>
  %n = stablehlo.constant dense<[7, -8, 3]> : tensor<3xi4>
  %around = stablehlo.add %n, %n : tensor<3xi4>
  check.expect_eq_const %around, dense<[-2, 0, 6]> : tensor<3xi4>
  %u = stablehlo.constant dense<[1, 3, 2]> : tensor<3xui2>
  %thrice = stablehlo.multiply %u, %u : tensor<3xui2>
  check.expect_eq_const %thrice, dense<[1, 1, 0]> : tensor<3xui2>
  return
}
func.func private @product(%a: tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>, %b: tensor<3x2x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x2x!quant.uniform<i32:f32, 0.25>> {
  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>, tensor<3x2x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x2x!quant.uniform<i32:f32, 0.25>>
  return %p : tensor<2x2x!quant.uniform<i32:f32, 0.25>>
}
