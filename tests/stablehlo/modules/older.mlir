// Batch normalisation (the formulas of the specification, by NumPy), operations that older modules have, and those of CHLO that
// broadcast.
func.func @main() {
  %x = stablehlo.constant dense<[[[[-0.802, -1.324], [-0.248, 0.42]], [[1.136, 0.11], [-0.553, -0.785]], [[0.749, 1.635], [0.273, -1.233]]], [[[-0.958, 1.6], [0.203, -1.732]], [[-0.084, -1.163], [-0.629, -0.488]], [[-0.713, 0.553], [-0.063, -0.589]]]]> : tensor<2x3x2x2xf64>
  %scale = stablehlo.constant dense<[0.41, 0.83, -1.643]> : tensor<3xf64>
  %offset = stablehlo.constant dense<[-0.257, -0.981, -0.173]> : tensor<3xf64>
  %mean = stablehlo.constant dense<[-1.289, 0.021, -0.038]> : tensor<3xf64>
  %variance = stablehlo.constant dense<[0.804, 1.548, 0.896]> : tensor<3xf64>
  %g = stablehlo.constant dense<[[[[-1.091, -1.355], [0.225, -1.109]], [[1.17, 0.717], [-1.998, 0.272]], [[-1.102, 0.033], [0.044, -1.988]]], [[[-0.233, -0.256], [0.962, -1.181]], [[0.738, -1.099], [-0.331, -0.84]], [[1.449, 0.568], [2.432, 0.642]]]]> : tensor<2x3x2x2xf64>
  %inferred = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %variance) <{epsilon = 1.0e-2 : f32, feature_index = 1 : i64}> : (tensor<2x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<2x3x2x2xf64>
  check.expect_almost_eq_const %inferred, dense<[[[[-0.035690215395543984, -0.2729052206594579], [0.2160667058998743, 0.5196292030575266]], [[-0.23957157324353462, -0.9218187175055377], [-1.3626860241777679, -1.5169563336015346]], [[-1.531464197307144, -3.060815250438185], [-0.7098263854669906, 1.8897251788844178]]], [[[-0.1065820560491274, 1.0558623567192478], [0.4210168349688881, -0.4583146500611377]], [[-1.05082061417886, -1.7683105446454304], [-1.413222849678657, -1.319463739209902]], [[0.9921376533447546, -1.1931427453729633], [-0.1298467535798239, 0.7780975511006814]]]]> : tensor<2x3x2x2xf64> {tolerance = 1.0e-12 : f64}
  %trained:3 = "stablehlo.batch_norm_training"(%x, %scale, %offset) <{epsilon = 0.01 : f32, feature_index = 1 : i64}> : (tensor<2x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<2x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>)
  check.expect_almost_eq_const %trained#0, dense<[[[[-0.43770664695219125, -0.6487922295178837], [-0.21368095204530688, 0.05644389307707354]], [[0.8184493188194434, -0.4609928163910547], [-1.287766827740529, -1.5770753807315967]], [[-1.445956777182507, -3.123041839760501], [-0.5449494523663385, 2.3057165795100265]]], [[[-0.5007896946155016, 0.533610535658524], [-0.03130624373663393, -0.8137786618680802]], [[-0.7029146236335857, -2.0484487989670437], [-1.382540319237603, -1.2067105521180315]], [[1.3214228633242961, -1.0749537610817317], [0.09105571809213342, 1.086706669464622]]]]> : tensor<2x3x2x2xf64> {tolerance = 1.0e-12 : f64}
  check.expect_almost_eq_const %trained#1, dense<[-0.355125, -0.307, 0.07650000000000001]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  check.expect_almost_eq_const %trained#2, dense<[1.017996359375, 0.433006, 0.7434117499999999]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %gradients:3 = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %g) <{epsilon = 0.01 : f32, feature_index = 1 : i64}> : (tensor<2x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<2x3x2x2xf64>) -> (tensor<2x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>)
  check.expect_almost_eq_const %gradients#0, dense<[[[[-0.2323198640431418, -0.3888334388707105], [0.40449936997945074, -0.15495321294557898]], [[0.6443543850733814, 0.5709683642020597], [-1.0871632523539876, 0.4738113195773642]], [[2.4480844910429713, 0.5987226086023978], [0.4109524737912397, 3.731820768801318]]], [[[0.14666443246238206, 0.315285992456634], [0.770990264716076, -0.33832393360573637]], [[0.6280133555992143, -0.3539053403346055], [0.03819915880628688, -0.33157593332709445]], [[-2.136447749249436, -0.458841217439852], [-3.7526836487469404, -0.7280945410088688]]]]> : tensor<2x3x2x2xf64> {tolerance = 1.0e-12 : f64}
  check.expect_almost_eq_const %gradients#1, dense<[-1.1118890870039708, 3.3347406890390836, 0.5466778277477455]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  check.expect_almost_eq_const %gradients#2, dense<[-4.037999999999999, -1.371, 2.0780000000000003]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %a = stablehlo.constant dense<[[0.845, 0.841, -0.607], [-0.07, 1.35, -0.397]]> : tensor<2x3xf64>
  %b = stablehlo.constant dense<[[0.189, -0.021, 0.609, -0.365], [-0.152, 0.242, 0.103, -0.865], [0.896, -1.298, -1.201, -1.282]]> : tensor<3x4xf64>
  %product = "stablehlo.einsum"(%a, %b) <{einsum_config = "ij,jk->ki"}> : (tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<4x2xf64>
  check.expect_almost_eq_const %product, dense<[[-0.5119990000000001, -0.574142], [0.973663, 0.8434760000000001], [1.330235, 0.5732170000000001], [-0.25771599999999995, -0.6332460000000001]]> : tensor<4x2xf64> {tolerance = 1.0e-12 : f64}
  %columns = "stablehlo.unary_einsum"(%a) <{einsum_config = "ij->j"}> : (tensor<2x3xf64>) -> tensor<3xf64>
  check.expect_almost_eq_const %columns, dense<[0.7749999999999999, 2.191, -1.004]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %places = stablehlo.constant dense<[[2, 0], [1, 2]]> : tensor<2x2xi32>
  %picked = "stablehlo.torch_index_select"(%a, %places) <{dim = 1 : i64, batch_dims = 0 : i64}> : (tensor<2x3xf64>, tensor<2x2xi32>) -> tensor<2x2x2xf64>
  check.expect_eq_const %picked, dense<[[[-0.607, 0.845], [0.841, -0.607]], [[-0.397, -0.07], [1.35, -0.397]]]> : tensor<2x2x2xf64>
  %squares = stablehlo.square %a : tensor<2x3xf64>
  check.expect_almost_eq_const %squares, dense<[[0.7140249999999999, 0.7072809999999999, 0.36844899999999997], [0.004900000000000001, 1.8225000000000002, 0.15760900000000003]]> : tensor<2x3xf64> {tolerance = 1.0e-12 : f64}
  %row = stablehlo.constant dense<[0.967, -0.361, -0.971]> : tensor<3xf64>
  %spread = chlo.broadcast_divide %a, %row : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  check.expect_almost_eq_const %spread, dense<[[0.8738366080661841, -2.329639889196676, 0.6251287332646756], [-0.07238883143743538, -3.7396121883656512, 0.40885684860968075]]> : tensor<2x3xf64> {tolerance = 1.0e-12 : f64}
  %less = chlo.broadcast_compare %a, %row {comparison_direction = #chlo<comparison_direction LT>} : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xi1>
  check.expect_eq_const %less, dense<[[true, false, false], [true, false, false]]> : tensor<2x3xi1>
  %p = stablehlo.constant dense<[2147483647, -7, 123456789]> : tensor<3xi32>
  %q = stablehlo.constant dense<[2147483647, 3, -987654321]> : tensor<3xi32>
  %upper = chlo.mulhi %p, %q : tensor<3xi32>
  check.expect_eq_const %upper, dense<[1073741823, -1, -28389653]> : tensor<3xi32>
  %pp = stablehlo.constant dense<[9223372036854775807, -9223372036854775808, -7, 1234567890123456789]> : tensor<4xi64>
  %qq = stablehlo.constant dense<[9223372036854775807, -9223372036854775808, 3, -987654321987654321]> : tensor<4xi64>
  %upper64 = chlo.mulhi %pp, %qq : tensor<4xi64>
  check.expect_eq_const %upper64, dense<[4611686018427387903, 4611686018427387904, -1, -66099811847306178]> : tensor<4xi64>
  %w = stablehlo.constant dense<[1.5, 0x7FF0000000000000, 0xFFF0000000000000, 0.0]> : tensor<4xf64>
  %above = chlo.is_pos_inf %w : tensor<4xf64> -> tensor<4xi1>
  check.expect_eq_const %above, dense<[false, true, false, false]> : tensor<4xi1>
  %below = chlo.is_neg_inf %w : tensor<4xf64> -> tensor<4xi1>
  check.expect_eq_const %below, dense<[false, false, true, false]> : tensor<4xi1>
  %sevens = "chlo.constant_like"(%row) <{value = 7.0 : f64}> : (tensor<3xf64>) -> tensor<3xf64>
  check.expect_eq_const %sevens, dense<7.0> : tensor<3xf64>
  return
}
