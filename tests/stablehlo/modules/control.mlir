// Calls, branches, loops and reducers with bodies of their own.
module @control {
  func.func @main() -> (tensor<i64>, tensor<2xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i64>
    %one = stablehlo.constant dense<1> : tensor<i64>
    %ten = stablehlo.constant dense<10> : tensor<i64>
    %n:2 = stablehlo.while(%i = %zero, %sum = %zero) : tensor<i64>, tensor<i64>
    cond {
      %more = stablehlo.compare LT, %i, %ten, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %s = stablehlo.add %sum, %i : tensor<i64>
      %next = stablehlo.add %i, %one : tensor<i64>
      stablehlo.return %next, %s : tensor<i64>, tensor<i64>
    }
    check.expect_eq_const %n#1, dense<45> : tensor<i64>
    // how many steps there are depends on what is computed
    %x0 = stablehlo.constant dense<27> : tensor<i64>
    %two = stablehlo.constant dense<2> : tensor<i64>
    %three = stablehlo.constant dense<3> : tensor<i64>
    %collatz:2 = "stablehlo.while"(%x0, %zero) ({
    ^bb0(%x: tensor<i64>, %steps: tensor<i64>):
      %go = "stablehlo.compare"(%x, %one) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%go) : (tensor<i1>) -> ()
    }, {
    ^bb0(%x: tensor<i64>, %steps: tensor<i64>):
      %odd = stablehlo.and %x, %one : tensor<i64>
      %is_odd = stablehlo.compare EQ, %odd, %one : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %y = "stablehlo.if"(%is_odd) ({
        %t = func.call @thrice(%x) : (tensor<i64>) -> tensor<i64>
        stablehlo.return %t : tensor<i64>
      }, {
        %h = stablehlo.divide %x, %two : tensor<i64>
        stablehlo.return %h : tensor<i64>
      }) : (tensor<i1>) -> tensor<i64>
      %s = stablehlo.add %steps, %one : tensor<i64>
      stablehlo.return %y, %s : tensor<i64>, tensor<i64>
    }) : (tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<i64>)
    check.expect_eq_const %collatz#1, dense<111> : tensor<i64>
    %which = stablehlo.constant dense<7> : tensor<i32>
    %case = "stablehlo.case"(%which) ({
      stablehlo.return %one : tensor<i64>
    }, {
      stablehlo.return %ten : tensor<i64>
    }) : (tensor<i32>) -> tensor<i64>
    check.expect_eq_const %case, dense<10> : tensor<i64>
    %v = stablehlo.constant dense<[[1.0, 5.0, 5.0], [0x7FC00000, 2.0, 9.0]]> : tensor<2x3xf32>
    %places = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %best:2 = stablehlo.reduce(%v init: %low), (%places init: %first) across dimensions = [1] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>)  {
      %gt = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %wins = stablehlo.or %gt, %nan : tensor<i1>
      %eq = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %before = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %tie = stablehlo.and %eq, %before : tensor<i1>
      %keep = stablehlo.or %wins, %tie : tensor<i1>
      %value = stablehlo.select %wins, %a, %b : tensor<i1>, tensor<f32>
      %place = stablehlo.select %keep, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %value, %place : tensor<f32>, tensor<i32>
    }
    check.expect_eq_const %best#1, dense<[1, 0]> : tensor<2xi32>
    return %n#1, %best#0 : tensor<i64>, tensor<2xf32>
  }
  func.func private @thrice(%x: tensor<i64>) -> tensor<i64> {
    %three = stablehlo.constant dense<3> : tensor<i64>
    %one = stablehlo.constant dense<1> : tensor<i64>
    %y = stablehlo.multiply %x, %three : tensor<i64>
    %z = stablehlo.add %y, %one : tensor<i64>
    return %z : tensor<i64>
  }
}
