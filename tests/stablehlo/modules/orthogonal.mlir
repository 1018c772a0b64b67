// The custom calls that JAX's QR factorisation is made of: LAPACK's packed form and the product of its reflections (by NumPy),
// of a matrix with a column that needs no reflection, too.
func.func @main() {
  %tall = stablehlo.constant dense<[[0.034, 1.36, 1.225], [-0.51, -0.298, -0.527], [0.57, -0.056, 0.747], [-1.847, 1.567, -0.096], [0.68, -0.137, -0.379]]> : tensor<5x3xf64>
  %tall_f:2 = stablehlo.custom_call @Qr(%tall) : (tensor<5x3xf64>) -> (tensor<5x3xf64>, tensor<3xf64>)
  check.expect_almost_eq_const %tall_f#0, dense<[[-2.1118629216878637, 1.3358390693962685, -0.3105324655616677], [-0.23766662578747164, 1.622138089274311, 1.2930627877381193], [0.26562740529188, 0.03260444048329304, -0.8489865810477303], [-0.8607259957440394, -0.8293979258977773, 0.015216608068809062], [0.3168888343832955, 0.07556239202527333, -0.6115824241837728]]> : tensor<5x3xf64> {tolerance = 1.0e-12 : f64}
  check.expect_almost_eq_const %tall_f#1, dense<[1.0160995297804774, 1.1801682329512846, 1.4553238075137154]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %wide = stablehlo.constant dense<[[0.463, 0.825, -0.203], [-0.153, 0.686, -0.87]]> : tensor<2x3xf64>
  %wide_f:2 = stablehlo.custom_call @Qr(%wide) : (tensor<2x3xf64>) -> (tensor<2x3xf64>, tensor<2xf64>)
  check.expect_almost_eq_const %wide_f#0, dense<[[-0.48762485580618226, -0.5680945027751145, -0.08022765766384463], [-0.16094676997504717, 0.9102140604916491, -0.889759811941275]]> : tensor<2x3xf64> {tolerance = 1.0e-12 : f64}
  check.expect_almost_eq_const %wide_f#1, dense<[1.949500408945581, 0.0]> : tensor<2xf64> {tolerance = 1.0e-12 : f64}
  %triangle = stablehlo.constant dense<[[-1.514, 0.395, -0.671], [0.0, -0.814, -0.468], [0.0, 0.0, 0.037]]> : tensor<3x3xf64>
  %triangle_f:2 = stablehlo.custom_call @Qr(%triangle) : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xf64>)
  check.expect_almost_eq_const %triangle_f#0, dense<[[-1.514, 0.395, -0.671], [0.0, -0.814, -0.468], [0.0, 0.0, 0.037]]> : tensor<3x3xf64> {tolerance = 1.0e-12 : f64}
  check.expect_almost_eq_const %triangle_f#1, dense<[0.0, 0.0, 0.0]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %q = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%tall_f#0, %tall_f#1) : (tensor<5x3xf64>, tensor<3xf64>) -> tensor<5x3xf64>
  check.expect_almost_eq_const %q, dense<[[-0.01609952978047735, 0.8516576917922623, -0.13987700963284536], [0.2414929467071626, -0.38257884288549804, -0.0502833215752257], [-0.26990388161388756, 0.18774489795611699, -0.49520233938702657], [0.8745832795453516, 0.24578516981927517, 0.16752815404861576], [-0.3219905956095501, 0.18070447857157887, 0.8394134680919854]]> : tensor<5x3xf64> {tolerance = 1.0e-12 : f64}
  return
}
