// chlo.scan along either axis, in both directions, with two carries; operations of several devices in groups of one.
func.func @main() {
  %x = stablehlo.constant dense<[[-1.136, 0.421, -1.055, -1.272], [0.614, -1.197, -0.322, -0.007], [-0.445, -0.054, 1.339, -0.517]]> : tensor<3x4xf64>
  %zero = stablehlo.constant dense<[0.0, 0.0, 0.0]> : tensor<3xf64>
  %sums:2 = chlo.scan(%x) inits(%zero) dimension=1 {
  ^bb0(%slice: tensor<3xf64>, %carry: tensor<3xf64>):
    %sum = stablehlo.add %slice, %carry : tensor<3xf64>
    stablehlo.return %sum, %sum : tensor<3xf64>, tensor<3xf64>
  } : (tensor<3x4xf64>, tensor<3xf64>) -> (tensor<3x4xf64>, tensor<3xf64>)
  check.expect_almost_eq_const %sums#0, dense<[[-1.136, -0.7149999999999999, -1.7699999999999998, -3.042], [0.614, -0.5830000000000001, -0.905, -0.912], [-0.445, -0.499, 0.84, 0.32299999999999995]]> : tensor<3x4xf64> {tolerance = 1.0e-12 : f64}
  check.expect_almost_eq_const %sums#1, dense<[-3.042, -0.912, 0.32299999999999995]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %suffixes:2 = chlo.scan(%x) inits(%zero) dimension=1 attributes {is_reverse = true} {
  ^bb0(%slice: tensor<3xf64>, %carry: tensor<3xf64>):
    %sum = stablehlo.add %slice, %carry : tensor<3xf64>
    stablehlo.return %sum, %sum : tensor<3xf64>, tensor<3xf64>
  } : (tensor<3x4xf64>, tensor<3xf64>) -> (tensor<3x4xf64>, tensor<3xf64>)
  check.expect_almost_eq_const %suffixes#0, dense<[[-3.042, -1.906, -2.327, -1.272], [-0.912, -1.526, -0.329, -0.007], [0.3229999999999999, 0.7679999999999999, 0.822, -0.517]]> : tensor<3x4xf64> {tolerance = 1.0e-12 : f64}
  check.expect_almost_eq_const %suffixes#1, dense<[-3.042, -0.912, 0.32299999999999995]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %u = stablehlo.constant dense<[-0.352, 0.265, -0.464, -0.479, -0.721]> : tensor<5xf64>
  %first = stablehlo.constant dense<-0.52> : tensor<f64>
  %steps = stablehlo.constant dense<0> : tensor<i32>
  %mixed:3 = "chlo.scan"(%u, %first, %steps) <{dimension = 0 : i64, is_reverse = false, operandSegmentSizes = array<i32: 1, 2>, resultSegmentSizes = array<i32: 1, 2>}> ({
  ^bb0(%slice: tensor<f64>, %state: tensor<f64>, %count: tensor<i32>):
    %half = stablehlo.constant dense<0.5> : tensor<f64>
    %decayed = stablehlo.multiply %state, %half : tensor<f64>
    %next = stablehlo.add %decayed, %slice : tensor<f64>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %counted = stablehlo.add %count, %one : tensor<i32>
    "stablehlo.return"(%next, %next, %counted) : (tensor<f64>, tensor<f64>, tensor<i32>) -> ()
  }) : (tensor<5xf64>, tensor<f64>, tensor<i32>) -> (tensor<5xf64>, tensor<f64>, tensor<i32>)
  check.expect_almost_eq_const %mixed#0, dense<[-0.612, -0.04099999999999998, -0.48450000000000004, -0.72125, -1.0816249999999998]> : tensor<5xf64> {tolerance = 1.0e-12 : f64}
  check.expect_almost_eq_const %mixed#1, dense<-1.0816249999999998> : tensor<f64> {tolerance = 1.0e-12 : f64}
  check.expect_eq_const %mixed#2, dense<5> : tensor<i32>
  %all = "stablehlo.all_reduce"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f64>, %r: tensor<f64>):
    %sum = stablehlo.add %l, %r : tensor<f64>
    stablehlo.return %sum : tensor<f64>
  }) : (tensor<3x4xf64>) -> tensor<3x4xf64>
  check.expect_eq_const %all, dense<[[-1.136, 0.421, -1.055, -1.272], [0.614, -1.197, -0.322, -0.007], [-0.445, -0.054, 1.339, -0.517]]> : tensor<3x4xf64>
  %gathered = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<3x4xf64>) -> tensor<3x4xf64>
  check.expect_eq_const %gathered, dense<[[-1.136, 0.421, -1.055, -1.272], [0.614, -1.197, -0.322, -0.007], [-0.445, -0.054, 1.339, -0.517]]> : tensor<3x4xf64>
  %sent = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<0> : tensor<1x2xi64>}> : (tensor<3x4xf64>) -> tensor<3x4xf64>
  check.expect_eq_const %sent, dense<[[-1.136, 0.421, -1.055, -1.272], [0.614, -1.197, -0.322, -0.007], [-0.445, -0.054, 1.339, -0.517]]> : tensor<3x4xf64>
  %nobody = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<> : tensor<0x2xi64>}> : (tensor<3x4xf64>) -> tensor<3x4xf64>
  check.expect_eq_const %nobody, dense<0.0> : tensor<3x4xf64>
  %who = stablehlo.replica_id : tensor<ui32>
  check.expect_eq_const %who, dense<0> : tensor<ui32>
  %t = stablehlo.constant dense<[[(3.16, 0.434), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], [(-1.576, 0.869), (4.734, 0.461), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], [(0.018, 0.129), (-0.615, 0.71), (2.366, -0.919), (0.0, 0.0), (0.0, 0.0)], [(1.069, 0.631), (-0.325, 1.548), (0.421, 0.01), (4.8759999999999994, -1.462), (0.0, 0.0)], [(0.258, 1.093), (-0.306, -1.059), (-1.059, 1.376), (-1.026, 0.032), (2.985, -1.814)]]> : tensor<5x5xcomplex<f64>>
  %rhs = stablehlo.constant dense<[[(-0.42, 0.624), (-0.509, -0.927)], [(1.591, -1.15), (-0.792, 0.119)], [(-0.254, -0.707), (-0.277, -0.63)], [(-0.379, -1.68), (-0.914, 1.95)], [(0.219, 0.917), (1.077, -0.974)]]> : tensor<5x2xcomplex<f64>>
  %rows = stablehlo.constant dense<[[(-0.42, 0.624), (1.591, -1.15), (-0.254, -0.707), (-0.379, -1.68), (0.219, 0.917)], [(-0.509, -0.927), (-0.792, 0.119), (-0.277, -0.63), (-0.914, 1.95), (1.077, -0.974)]]> : tensor<2x5xcomplex<f64>>
  %upper = stablehlo.constant dense<[[(3.16, 0.434), (-1.576, 0.869), (0.018, 0.129), (1.069, 0.631), (0.258, 1.093)], [(0.0, 0.0), (4.734, 0.461), (-0.615, 0.71), (-0.325, 1.548), (-0.306, -1.059)], [(0.0, 0.0), (0.0, 0.0), (2.366, -0.919), (0.421, 0.01), (-1.059, 1.376)], [(0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (4.8759999999999994, -1.462), (-1.026, 0.032)], [(0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (2.985, -1.814)]]> : tensor<5x5xcomplex<f64>>
  %s0 = "stablehlo.triangular_solve"(%t, %rhs) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<5x5xcomplex<f64>>, tensor<5x2xcomplex<f64>>) -> tensor<5x2xcomplex<f64>>
  check.expect_almost_eq_const %s0, dense<[[(-0.10383217698209034, 0.21172884962348962), (-0.19763777236701238, -0.2662105084787078)], [(0.32238561957552464, -0.18477079463883833), (-0.281939120180178, 0.00024786591203049155)], [(0.09041508507782003, -0.40441806165575844), (-0.11967573348153175, -0.2152855978096962)], [(0.05852878256293934, -0.43990946487264826), (-0.3348548006848976, 0.49181399872826626)], [(0.04940073885228106, 0.1153876241627198), (0.0795862634991399, -0.13113062828221073)]]> : tensor<5x2xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %s1 = "stablehlo.triangular_solve"(%t, %rhs) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>}> : (tensor<5x5xcomplex<f64>>, tensor<5x2xcomplex<f64>>) -> tensor<5x2xcomplex<f64>>
  check.expect_almost_eq_const %s1, dense<[[(0.16227237830846356, 0.3150367018498813), (-0.10744123613849071, -0.4888340317765131)], [(0.4863929802437285, -0.30166875974528934), (-0.2852611692823453, -0.10730986822487387)], [(-0.11565740887103503, -0.010554663758215883), (0.006792010720471421, -0.43802614955365843)], [(-0.11914575862010489, -0.2672182886885178), (-0.05950514651597748, 0.33470344218559644)], [(0.18991779323702893, 0.19178865094406353), (0.11868127562891052, -0.3984213849215557)]]> : tensor<5x2xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %s2 = "stablehlo.triangular_solve"(%t, %rhs) <{left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<5x5xcomplex<f64>>, tensor<5x2xcomplex<f64>>) -> tensor<5x2xcomplex<f64>>
  check.expect_almost_eq_const %s2, dense<[[(-0.284658675488629, -1.8124778649305902), (-3.822933773649339, -3.3375226966913702)], [(0.4789050915900003, -1.4277317456299996), (-0.7964638356299996, -0.7798468253399995)], [(1.284860342, 0.27814450599999996), (-0.534808994, -3.5307415919999996)], [(-0.12496200000000002, -0.7461659999999999), (0.15983399999999992, 0.916212)], [(0.219, 0.917), (1.077, -0.974)]]> : tensor<5x2xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %s3 = "stablehlo.triangular_solve"(%upper, %rhs) <{left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<5x5xcomplex<f64>>, tensor<5x2xcomplex<f64>>) -> tensor<5x2xcomplex<f64>>
  check.expect_almost_eq_const %s3, dense<[[(-0.08736204186674137, 0.13176067495093408), (-0.1723904822129255, -0.41227412222182397)], [(0.14267207452316505, -0.2909098135489461), (-0.0641606170097963, 0.10239220822996026)], [(0.032480501827791025, -0.07114372166293718), (0.2502521456450387, -0.49785079312264585)], [(-0.0059823771448630604, -0.29173676405880516), (-0.19838586131558814, 0.3213071835731466)], [(-0.08275861108035273, 0.25690984237863995), (0.4083070311415929, -0.07816785444192649)]]> : tensor<5x2xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %s4 = "stablehlo.triangular_solve"(%t, %rows) <{left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<5x5xcomplex<f64>>, tensor<2x5xcomplex<f64>>) -> tensor<2x5xcomplex<f64>>
  check.expect_almost_eq_const %s4, dense<[[(-0.08736204186674137, 0.13176067495093408), (0.14267207452316505, -0.2909098135489461), (0.032480501827791025, -0.07114372166293718), (-0.0059823771448630604, -0.29173676405880516), (-0.08275861108035273, 0.25690984237863995)], [(-0.1723904822129255, -0.41227412222182397), (-0.0641606170097963, 0.10239220822996026), (0.2502521456450387, -0.49785079312264585), (-0.19838586131558814, 0.3213071835731466), (0.4083070311415929, -0.07816785444192649)]]> : tensor<2x5xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %sq = stablehlo.square %t : tensor<5x5xcomplex<f64>>
  check.expect_almost_eq_const %sq, dense<[[(9.797244000000001, 2.74288), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], [(1.7286150000000002, -2.739088), (22.198235, 4.3647480000000005), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], [(-0.016316999999999998, 0.004644), (-0.12587500000000001, -0.8733), (4.753395, -4.348708), (0.0, 0.0), (0.0, 0.0)], [(0.7445999999999999, 1.349078), (-2.2906790000000004, -1.0062), (0.177141, 0.00842), (21.637931999999996, -14.257423999999999), (0.0, 0.0)], [(-1.1280849999999998, 0.563988), (-1.027845, 0.6481079999999999), (-0.7718949999999999, -2.9143679999999996), (1.051652, -0.065664), (5.619628999999999, -10.82958)]]> : tensor<5x5xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  return
}
