// Integers of every size, and their bits.
func.func @main() {
  %a = stablehlo.constant dense<[1, 128, 255, 7]> : tensor<4xui8>
  %one = stablehlo.constant dense<1> : tensor<4xui8>
  %wrapped = stablehlo.add %a, %one : tensor<4xui8>
  check.expect_eq_const %wrapped, dense<[2, 129, 0, 8]> : tensor<4xui8>
  %right = stablehlo.shift_right_logical %a, %one : tensor<4xui8>
  check.expect_eq_const %right, dense<[0, 64, 127, 3]> : tensor<4xui8>
  %minus = stablehlo.constant dense<[-128, -1, 64, 3]> : tensor<4xi8>
  %i1 = stablehlo.constant dense<1> : tensor<4xi8>
  %arithmetic = stablehlo.shift_right_arithmetic %minus, %i1 : tensor<4xi8>
  check.expect_eq_const %arithmetic, dense<[-64, -1, 32, 1]> : tensor<4xi8>
  %logical = stablehlo.shift_right_logical %minus, %i1 : tensor<4xi8>
  check.expect_eq_const %logical, dense<[64, 127, 32, 1]> : tensor<4xi8>
  %eight = stablehlo.constant dense<8> : tensor<4xi8>
  %gone = stablehlo.shift_right_arithmetic %minus, %eight : tensor<4xi8>
  check.expect_eq_const %gone, dense<[-1, -1, 0, 0]> : tensor<4xi8>
  %large = stablehlo.constant dense<[18446744073709551615, 9223372036854775808, 1]> : tensor<3xui64>
  %small = stablehlo.constant dense<[2, 1, 18446744073709551615]> : tensor<3xui64>
  %less = stablehlo.compare LT, %small, %large, UNSIGNED : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xi1>
  check.expect_eq_const %less, dense<[true, true, false]> : tensor<3xi1>
  %quotient = stablehlo.divide %large, %small : tensor<3xui64>
  check.expect_eq_const %quotient, dense<[9223372036854775807, 9223372036854775808, 0]> : tensor<3xui64>
  %most = stablehlo.maximum %large, %small : tensor<3xui64>
  check.expect_eq_const %most, dense<[18446744073709551615, 9223372036854775808, 18446744073709551615]> : tensor<3xui64>
  %w = stablehlo.constant dense<[0, 1, 65535, 4660]> : tensor<4xui16>
  %ones = stablehlo.popcnt %w : tensor<4xui16>
  check.expect_eq_const %ones, dense<[0, 1, 16, 5]> : tensor<4xui16>
  %zeros = stablehlo.count_leading_zeros %w : tensor<4xui16>
  check.expect_eq_const %zeros, dense<[16, 15, 0, 3]> : tensor<4xui16>
  %f = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %bits = stablehlo.bitcast_convert %f : (tensor<2xf32>) -> tensor<2xui32>
  check.expect_eq_const %bits, dense<[1065353216, 3221225472]> : tensor<2xui32>
  %bytes = stablehlo.bitcast_convert %f : (tensor<2xf32>) -> tensor<2x4xui8>
  check.expect_eq_const %bytes, dense<[[0, 0, 128, 63], [0, 0, 0, 192]]> : tensor<2x4xui8>
  %again = stablehlo.bitcast_convert %bytes : (tensor<2x4xui8>) -> tensor<2xf32>
  check.expect_eq %again, %f : tensor<2xf32>
  %p = stablehlo.constant dense<[1.00048828125, 70000.0, 1.0e-8, -0.0]> : tensor<4xf32>
  %half = stablehlo.reduce_precision %p, format = e5m10 : tensor<4xf32>
  check.expect_eq_const %half, dense<[1.0, 0x7F800000, 0.0, -0.0]> : tensor<4xf32>
  %t = stablehlo.constant dense<"0x0B"> : tensor<4xi1>
  check.expect_eq_const %t, dense<[true, true, false, true]> : tensor<4xi1>
  %not = stablehlo.not %t : tensor<4xi1>
  check.expect_eq_const %not, dense<[false, false, true, false]> : tensor<4xi1>
  func.return
}
