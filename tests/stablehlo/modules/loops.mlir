// Loops of unknown length within each other.
module @loops {
  func.func @main() {
    %zero = stablehlo.constant dense<0> : tensor<i64>
    %one = stablehlo.constant dense<1> : tensor<i64>
    %five = stablehlo.constant dense<5> : tensor<i64>
    %start = stablehlo.constant dense<0.0> : tensor<3xf32>
    %outer:2 = stablehlo.while(%i = %zero, %sum = %start) : tensor<i64>, tensor<3xf32>
    cond {
      %go = stablehlo.compare NE, %i, %five, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %inner:2 = stablehlo.while(%j = %zero, %part = %sum) : tensor<i64>, tensor<3xf32>
      cond {
        %go = stablehlo.compare NE, %j, %i, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      } do {
        %ij = stablehlo.multiply %i, %j : tensor<i64>
        %f = stablehlo.convert %ij : (tensor<i64>) -> tensor<f32>
        %wide = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<3xf32>
        %more = stablehlo.add %part, %wide : tensor<3xf32>
        %next = stablehlo.add %j, %one : tensor<i64>
        stablehlo.return %next, %more : tensor<i64>, tensor<3xf32>
      }
      %next = stablehlo.add %i, %one : tensor<i64>
      stablehlo.return %next, %inner#1 : tensor<i64>, tensor<3xf32>
    }
    check.expect_eq_const %outer#0, dense<5> : tensor<i64>
    check.expect_eq_const %outer#1, dense<35.0> : tensor<3xf32>
    return
  }
}
