// Pieces, places, windows, orders and products.
#loc = loc("made by hand")
module @places {
  func.func @main() {
    %x = stablehlo.iota dim = 0 : tensor<12xf32>
    %m = stablehlo.reshape %x : (tensor<12xf32>) -> tensor<3x4xf32>
    %i = stablehlo.constant dense<2> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %d = stablehlo.dynamic_slice %m, %i, %i, sizes = [2, 2] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    check.expect_eq_const %d, dense<[[6.0, 7.0], [10.0, 11.0]]> : tensor<2x2xf32>
    %u = stablehlo.constant dense<[[-1.0, -2.0]]> : tensor<1x2xf32>
    %ud = stablehlo.dynamic_update_slice %m, %u, %i, %i : (tensor<3x4xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    check.expect_eq_const %ud, dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, -1.0, -2.0]]> : tensor<3x4xf32>
    %p = stablehlo.pad %x, %zero, low = [1], high = [-2], interior = [1] : (tensor<12xf32>, tensor<f32>) -> tensor<22xf32>
    %s = stablehlo.slice %p [1:9:2] : (tensor<22xf32>) -> tensor<4xf32>
    check.expect_eq_const %s, dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32> loc(#loc)
    %ids = stablehlo.constant dense<[[2], [0], [9]]> : tensor<3x1xi64>
    %g = "stablehlo.gather"(%m, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<3x4xf32>, tensor<3x1xi64>) -> tensor<3x4xf32>
    check.expect_eq_const %g, dense<[[8.0, 9.0, 10.0, 11.0], [0.0, 1.0, 2.0, 3.0], [8.0, 9.0, 10.0, 11.0]]> : tensor<3x4xf32>
    %sc = "stablehlo.scatter"(%m, %ids, %g) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %sum = stablehlo.subtract %a, %b : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<3x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<3x4xf32>
    check.expect_eq_const %sc, dense<[[0.0, 0.0, 0.0, 0.0], [4.0, 5.0, 6.0, 7.0], [0.0, 0.0, 0.0, 0.0]]> : tensor<3x4xf32>
    %w = "stablehlo.reduce_window"(%m, %zero) <{padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %sum = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x2xf32>
    check.expect_eq_const %w, dense<[[0.0, 3.0], [4.0, 11.0], [8.0, 19.0]]> : tensor<3x2xf32>
    %back = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 3>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %sum = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<12xf32>, tensor<4xf32>, tensor<f32>) -> tensor<12xf32>
    check.expect_eq_const %back, dense<[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 3.0]> : tensor<12xf32>
    %keys = stablehlo.constant dense<[3.0, 0x7FC00000, -1.0, 3.0]> : tensor<4xf32>
    %nr = stablehlo.iota dim = 0 : tensor<4xi32>
    %sorted:2 = "stablehlo.sort"(%keys, %nr) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d1: tensor<i32>):
      %lt = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
    check.expect_eq_const %sorted#1, dense<[2, 0, 3, 1]> : tensor<4xi32>
    %turned = "stablehlo.sort"(%nr) <{dimension = 0 : i64}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %one = stablehlo.constant dense<1> : tensor<i32>
      %oa = stablehlo.and %a, %one : tensor<i32>
      %gt = stablehlo.compare GT, %oa, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %gt : tensor<i1>
    }) : (tensor<4xi32>) -> tensor<4xi32>
    %t = stablehlo.transpose %m, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %mm = stablehlo.dot_general %m, %t, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
    check.expect_eq_const %mm, dense<[[14.0, 38.0, 62.0], [38.0, 126.0, 214.0], [62.0, 214.0, 366.0]]> : tensor<3x3xf32>
    %img = stablehlo.reshape %x : (tensor<12xf32>) -> tensor<1x1x3x4xf32>
    %ker = stablehlo.constant dense<1.0> : tensor<1x1x2x2xf32>
    %conv = stablehlo.convolution(%img, %ker) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x3x4xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
    check.expect_eq_const %conv, dense<[[[[10.0, 18.0], [26.0, 34.0]]]]> : tensor<1x1x2x2xf32>
    %r = stablehlo.reverse %nr, dims = [0] : tensor<4xi32>
    %cc = stablehlo.concatenate %nr, %r, dim = 0 : (tensor<4xi32>, tensor<4xi32>) -> tensor<8xi32>
    check.expect_eq_const %cc, dense<[0, 1, 2, 3, 3, 2, 1, 0]> : tensor<8xi32>
    func.return
  }
}
