// Elementwise operations in pretty form, each with what it is to give.
module @elementwise attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main() {
    %x = stablehlo.constant dense<[-2.5, -0.0, 0.5, 0x7FC00000]> : tensor<4xf32>
    %y = stablehlo.constant dense<[2.0, 3.0, -4.0, 1.0]> : tensor<4xf32>
    %sum = stablehlo.add %x, %y : tensor<4xf32>
    check.expect_eq_const %sum, dense<[-0.5, 3.0, -3.5, 0x7FC00000]> : tensor<4xf32>
    %rem = stablehlo.remainder %x, %y : tensor<4xf32>
    check.expect_eq_const %rem, dense<[-0.5, -0.0, 0.5, 0x7FC00000]> : tensor<4xf32>
    %lt = stablehlo.compare LT, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    check.expect_eq_const %lt, dense<[true, true, false, false]> : tensor<4xi1>
    %ge = stablehlo.compare GE, %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    check.expect_eq_const %ge, dense<[false, false, true, false]> : tensor<4xi1>
    %total = stablehlo.compare LT, %y, %x, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    check.expect_eq_const %total, dense<[false, false, true, true]> : tensor<4xi1>
    %pick = stablehlo.select %lt, %x, %y : tensor<4xi1>, tensor<4xf32>
    check.expect_eq_const %pick, dense<[-2.5, -0.0, -4.0, 1.0]> : tensor<4xf32>
    %sign = stablehlo.sign %x : tensor<4xf32>
    check.expect_eq_const %sign, dense<[-1.0, -0.0, 1.0, 0x7FC00000]> : tensor<4xf32>
    %away = stablehlo.round_nearest_afz %x : tensor<4xf32>
    check.expect_eq_const %away, dense<[-3.0, 0.0, 1.0, 0x7FC00000]> : tensor<4xf32>
    %even = stablehlo.round_nearest_even %x : tensor<4xf32>
    check.expect_eq_const %even, dense<[-2.0, 0.0, 0.0, 0x7FC00000]> : tensor<4xf32>
    %low = stablehlo.constant dense<-1.0> : tensor<f32>
    %high = stablehlo.constant dense<1.0> : tensor<f32>
    %clamp = stablehlo.clamp %low, %y, %high : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    check.expect_eq_const %clamp, dense<[1.0, 1.0, -1.0, 1.0]> : tensor<4xf32>
    %whole = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi32>
    check.expect_eq_const %whole, dense<[-2, 0, 0, 0]> : tensor<4xi32>
    %cube = stablehlo.constant dense<[27.0, -8.0, 0.0, 0x7F800000]> : tensor<4xf32>
    %root = stablehlo.cbrt %cube : tensor<4xf32>
    check.expect_almost_eq_const %root, dense<[3.0, -2.0, 0.0, 0x7F800000]> : tensor<4xf32>
    %power = stablehlo.power %y, %y : tensor<4xf32>
    check.expect_almost_eq_const %power, dense<[4.0, 27.0, 0.00390625, 1.0]> : tensor<4xf32>
    %e = stablehlo.exponential %y {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>} : tensor<4xf32>
    %back = stablehlo.log %e : tensor<4xf32>
    check.expect_almost_eq %back, %y, tolerance = 0.0001 : tensor<4xf32>
    func.return
  }
}
