// Programs as JAX has them, in text and as portable artifacts: written by tools/make_bytecode_modules.py.
#pragma once

namespace lc::test {

struct Artifact {
  const char *name, *text, *hex;
};

// clang-format off
inline constexpr Artifact kArtifacts[] = {
  {"products, 1.13.0", R"(module @jit_products attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<3x2xf32>, %arg2: tensor<5x3xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<2xf32> {jax.result_info = "result[0]"}, tensor<5x3xf32> {jax.result_info = "result[1]"}, tensor<1x4x4xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %1 = stablehlo.tanh %0 : tensor<4x2xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
    %3 = call @sort(%arg2) : (tensor<5x3xf32>) -> tensor<5x3xf32>
    %4 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<4x3xf32>) -> tensor<1x4x3xf32>
    %5 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<4x3xf32>) -> tensor<1x4x3xf32>
    %6 = stablehlo.dot_general %4, %5, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x4x3xf32>, tensor<1x4x3xf32>) -> tensor<1x4x4xf32>
    return %2, %3, %6 : tensor<2xf32>, tensor<5x3xf32>, tensor<1x4x4xf32>
  }
  func.func private @sort(%arg0: tensor<5x3xf32>) -> tensor<5x3xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.select %1, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %4 = stablehlo.select %3, %cst_1, %2 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %5 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.select %5, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %8 = stablehlo.select %7, %cst_4, %6 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<5x3xf32>) -> tensor<5x3xf32>
    return %0 : tensor<5x3xf32>
  }
})",
   "4d4cef520d537461626c65484c4f5f76312e31332e3000012b0501051b01030b03190f13171b1f23272b2f33373b03dfa32901550b130f1b0b0b0b1313131313131313131313"
   "131313131313131313131313131313131313131313131313034f0b1f0b2f0b0b0b0b0b0b1f0f130b4f2f17130b0f0b17130b130b130b0b0b0b0b0f0b0b0b2f170b01030f0327"
   "0f07170f07131717131b171b07271707071313021e06051f17010d35110105030509050b05052105230525170103031701050717011b0717011b3717011d151701430b17011f"
   "1517011f3d1701211d1701231917012521170127191701291917012b2117012d1917012f21170131191701332117013519170137191701392117013b1917013d1917013f0f17"
   "0105351701056517010595170107151701091517010b1917010f151701111517011315170115151701170b23231f03090000000009031f0d1100000000000000001d270d0103"
   "011d29070107031f03090000c07f1f250103056f6f17011f2721010000000000000002000000000000001f0d11020000000000000003075f5f770d03797b1d2b131b05231d03"
   "078185890d035d831d2d0d035d871d2f0d035d8b1d311d331d35231f1d37130b0105030905070b1f0d11010000000000000029010101a12701010202290105092905150d0529"
   "01211d2903050b2905110d0529050d0905290309052907051111052905110905290705110d051b11070f110707130715110307030701432903010b2903090b048e040501510f"
   "0701070466040301090b5011030704d9031727071f3f23410f43000d464505031705010313464707031703070342490903031556030b031305090b07042d03070b0507030703"
   "001906030303050103070403030517464b0d030703050f464d0f031903010f464f0f031903010d4651110315051113070453070d0f150b50131307046e0203050b030f150011"
   "5617150307030107040e0203234305071b071d0003421f0903030546211703090501050342230903030906250303070709010546271903090501010342291b030309062b0303"
   "070d0f0b03422d09030305462f1703090503130342310903030906330303071517030546351903090503030342371b03030906390303071b1d1905463b1d030905111f07043d"
   "03210704190303060301050100fe0439110f0b151515270b211b2529050f11151111291f11151517190f0b116275696c74696e0076686c6f006d6f64756c6500636f6e737461"
   "6e745f763100636f6d706172655f76310072657475726e5f76310073656c6563745f76310066756e635f763100646f745f67656e6572616c5f76320062726f6164636173745f"
   "696e5f64696d5f763100736f72745f76310074616e685f7632007265647563655f76310063616c6c5f7631006164645f7631002d006d686c6f2e6e756d5f706172746974696f"
   "6e73006d686c6f2e6e756d5f7265706c69636173006a69745f70726f6475637473006a61782e726573756c745f696e666f00736f72740074662e616c696173696e675f6f7574"
   "70757400726573756c745b305d00726573756c745b315d00726573756c745b325d006d61696e007075626c696300707269766174650008851f051b010b757d7f8d8f1955556b"
   "559d55556d6b555b55039f0357035b036303711955555b557355556d5b5573550b6191616393059597055965055967036905999b"},
  {"products, 0.9.0", R"(module @jit_products attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<3x2xf32>, %arg2: tensor<5x3xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<2xf32> {jax.result_info = "result[0]"}, tensor<5x3xf32> {jax.result_info = "result[1]"}, tensor<1x4x4xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %1 = stablehlo.tanh %0 : tensor<4x2xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
    %3 = call @sort(%arg2) : (tensor<5x3xf32>) -> tensor<5x3xf32>
    %4 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<4x3xf32>) -> tensor<1x4x3xf32>
    %5 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<4x3xf32>) -> tensor<1x4x3xf32>
    %6 = stablehlo.dot_general %4, %5, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x4x3xf32>, tensor<1x4x3xf32>) -> tensor<1x4x4xf32>
    return %2, %3, %6 : tensor<2xf32>, tensor<5x3xf32>, tensor<1x4x4xf32>
  }
  func.func private @sort(%arg0: tensor<5x3xf32>) -> tensor<5x3xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.select %1, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %4 = stablehlo.select %3, %cst_1, %2 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %5 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.select %5, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %8 = stablehlo.select %7, %cst_4, %6 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<5x3xf32>) -> tensor<5x3xf32>
    return %0 : tensor<5x3xf32>
  }
})",
   "4d4cef5201537461626c65484c4f5f76302e392e30000129050103010305031907090b0d0f11131517191b1d032a02db2701930b13130b0b0b0f0b0b0b0b0b1b1b130b0b0b0b"
   "0b13230b0b0b1333133313131b0b0b1313131313131313131313131313131313131b131313131333131313130b130b130b131333131303492f0b0b0b0b0b0f130b2f17130b0f"
   "0b17130b130b130b0b0b0b0b0f0b1f0b0b1f0b0b2f4f01030f03250f07170f07131717131b171b07271707131302fe07051f030317cb17010d35052105230525110105052705"
   "29052b052d052f0305099d0bcd0305099d0bcf030317d105310533053505370539030387d903072d0d2f0d0731053b053d053f17010303030b0fa711af13b107bf15c1170105"
   "07030b0f9911c31399079b15c517011b0717011b37030541c743c90541054317011d151701430b17011f1517011f3d1701211d1701231917012521170127191701291917012b"
   "2117012d1917012f21170131191701332117013519170137191701392117013b19030509d30bd517013d1917013f0f170105351701056517010595030b1f9f21d723a1259f27"
   "93170107151701091517010b1903037f9305450303839b054717010f1505491701111517011315030b1f9321a523a1259327a5170115151701170b1f0d110000000000000000"
   "1d4b0d0103011d4d09031f23010305a3a317011f0d11020000000000000003079797a90d03abad1d4f131b05231d0307b3b7bb0d0395b51d510d0395b91d530d0395bd1d551d"
   "571d59231f1d5b130b0105031f030900000000070107031f03090000c07f0905070b1f0d1101000000000000001f252101000000000000000200000000000000010202290105"
   "092905150d052901211d2903050b2905110d0529050d0905290309052907051111052905110905290705110d051b11070f1107071307151103070307012903010b2903090b04"
   "4204050111332b070301090b11373507031727070f6f117107730d07777503170501031306790317030703037b0303031517057d031305090b0703070b050305030519060503"
   "03050103070405030517078581030703050f078929031903010f078b29031903010d078f8d0315051113070491070d0f150b113b390703050b03073d1117453f030703010703"
   "2343050349034b03034d03030305074f1903090501050303510303030906530303070709010507551b03090501010303571d03030906590303070d0f0b03035b03030305075d"
   "19030905031303035f0303030906610303071517030507631b03090503030303651d03030906670303071b1d1905076b69030905111f07046d03210704470303060301050100"
   "96095d110f0b151515270b212b0f1715151b252937312337310d1f151d152b1b13050f11151111291f11151517190f0b116275696c74696e0076686c6f006d6f64756c650063"
   "6f6e7374616e745f763100636f6d706172655f76310072657475726e5f76310073656c6563745f76310066756e635f763100646f745f67656e6572616c5f76310062726f6164"
   "636173745f696e5f64696d5f763100736f72745f76310074616e685f7631007265647563655f76310063616c6c5f7631006164645f7631002d0073796d5f6e616d6500636f6d"
   "706172655f7479706500636f6d70617269736f6e5f646972656374696f6e006172675f61747472730066756e6374696f6e5f74797065007265735f61747472730073796d5f76"
   "69736962696c6974790076616c7565006c68735f6261746368696e675f64696d656e73696f6e73006c68735f636f6e7472616374696e675f64696d656e73696f6e7300707265"
   "636973696f6e5f636f6e666967007268735f6261746368696e675f64696d656e73696f6e73007268735f636f6e7472616374696e675f64696d656e73696f6e73006d686c6f2e"
   "6e756d5f706172746974696f6e73006d686c6f2e6e756d5f7265706c69636173006a69745f70726f64756374730064696d656e73696f6e0069735f737461626c650064696d65"
   "6e73696f6e730063616c6c65650062726f6164636173745f64696d656e73696f6e73006a61782e726573756c745f696e666f00736f72740074662e616c696173696e675f6f75"
   "7470757400726573756c745b305d00726573756c745b315d00726573756c745b325d006d61696e007075626c6963007072697661746500"},
  {"places, 1.13.0", R"(module @jit_places attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<2xi32>) -> (tensor<2x3xf32> {jax.result_info = "result[0]"}, tensor<4x3xf32> {jax.result_info = "result[1]"}, tensor<2x2xf32> {jax.result_info = "result[2]"}, tensor<9x5xf32> {jax.result_info = "result[3]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<2xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<2xi1>, tensor<2xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %6 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %8 = stablehlo.compare LT, %arg1, %7, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_2 = stablehlo.constant dense<4> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %10 = stablehlo.add %arg1, %9 : tensor<2xi32>
    %11 = stablehlo.select %8, %10, %arg1 : tensor<2xi1>, tensor<2xi32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %14 = "stablehlo.scatter"(%arg0, %12, %13) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %26 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %26 : tensor<f32>
    }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %15 = stablehlo.slice %arg1 [0:1] : (tensor<2xi32>) -> tensor<1xi32>
    %16 = stablehlo.reshape %15 : (tensor<1xi32>) -> tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %17 = stablehlo.compare LT, %16, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_4 = stablehlo.constant dense<4> : tensor<i32>
    %18 = stablehlo.add %16, %c_4 : tensor<i32>
    %19 = stablehlo.select %17, %18, %16 : tensor<i1>, tensor<i32>
    %c_5 = stablehlo.constant dense<1> : tensor<i32>
    %20 = stablehlo.dynamic_slice %arg0, %19, %c_5, sizes = [2, 2] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %21 = stablehlo.reverse %arg0, dims = [0] : tensor<4x3xf32>
    %22 = stablehlo.transpose %21, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    %23 = stablehlo.transpose %22, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %24 = stablehlo.concatenate %arg0, %23, dim = 0 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %25 = call @_pad(%24, %c_6) : (tensor<8x3xf32>, tensor<i32>) -> tensor<9x5xf32>
    return %6, %14, %20, %25 : tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x2xf32>, tensor<9x5xf32>
  }
  func.func private @_pad(%arg0: tensor<8x3xf32>, %arg1: tensor<i32>) -> tensor<9x5xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [0, 2], high = [1, 0], interior = [0, 0] : (tensor<8x3xf32>, tensor<f32>) -> tensor<9x5xf32>
    return %1 : tensor<9x5xf32>
  }
})",
   "4d4cef520d537461626c65484c4f5f76312e31332e300001370501052701030b03250f13171b1f23272b2f33373b3f43474b4f5303f7b52f01710b0f1b0b0b0b131313131313"
   "131313131313131313131313131313131313131313131313131313131313131313131313131313131313131303450f2f0b1f2f0b4f0b0b1f0b0b0f0b1b130b130b130b130b0b"
   "0b0b0b4f2f4f1f1f2f0f01030f032d0f1307170f1307071717171713071713271b13130f1702c607052b110105030507030903052d052f053117010303170105071701590717"
   "0159371701596717015b1517015d1517015f0b1701053517010565170107151701091517010b1517010d1917010f15170111151701131517011515170117151701191917011b"
   "1517011d1517011f19170121151701231717012517170127171701291917012b1717012d17170137171701391717013b1917013d1717013f1917014117170143171701451917"
   "0147171701491717014b1717014d1717014f1717015119170153171701550b17012f1517012f3d1701311b1701330f1f27011f211100000000000000001d331f030900000000"
   "1f2111010000000000000003011f0d21010000000000000000000000000000000907070b1f03090400000005011d35130f05232303098f93979b0d0375911d370d0375951d39"
   "0d0375991d3b0d03759d1d3d1d3f1d4123251d431f0d21000000000000000002000000000000001f0d1100000000000000001f0d21010000000000000003000000000000001f"
   "0b09000000401f0309010000001f0d110200000000000000130f0101020229011129030911092905110d072901072903090f1d1b29052515072905090d072905210d07290509"
   "09072903091d0129050905112903050f1105090509150919131105170303132903010f2903051129011d29050d110704da050501510d05010704b2050301090f500f030704f2"
   "04034b9305131d0b1f0003422105030305462307030503050b462509031b0503070342270b0303054629070305030b07062b030505030d0d062d030507090f0305462f0d031f"
   "03111746310f031505011303423305030305463507030503170b463709031b0503190342390b030305463b070305031d07063d030505031f0d063f0305071b21030546410d03"
   "1f032303424311030b05464507031503271956471303090701252907042d03070b051769176b0007066d030b05010309046f03051b464915032903031d064b0303032d03424d"
   "0503030b464f09032b052f310342510b03030706530303052f350d065503030733372f0342571703031f46591903190701393b21465b0d0309030111465d1b032d033f11465f"
   "1b030903412346611d03170501430342630503032546651f031305454709046709152b3d490f50112107043d03090f052f13071500130617030b030315461923031305010509"
   "041b0307060301050100120645110f0b151515150b2117252905111f1723171317150f171b111517150f29190f0b116275696c74696e0076686c6f006d6f64756c6500636f6e"
   "7374616e745f76310062726f6164636173745f696e5f64696d5f7631006164645f76310072657475726e5f763100636f6d706172655f76310073656c6563745f76310066756e"
   "635f7631007472616e73706f73655f763100636f6e766572745f7631007061645f7631006761746865725f763200736361747465725f763200736c6963655f76310072657368"
   "6170655f76310064796e616d69635f736c6963655f763100726576657273655f763100636f6e636174656e6174655f76310063616c6c5f7631002d006d686c6f2e6e756d5f70"
   "6172746974696f6e73006d686c6f2e6e756d5f7265706c69636173006a69745f706c61636573006a61782e726573756c745f696e666f005f70616400726573756c745b305d00"
   "726573756c745b315d00726573756c745b325d00726573756c745b335d006d61696e007075626c69630070726976617465000883250517010b7b8b8d9fa103770371057f8103"
   "830373117389857971ab737103ad1189857173737185790779737903af03b1037d03b303870b7ba37b87a5077da7a9"},
  {"windows, 1.17.0", R"(module @jit_windows attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1x2x4x4xf32>, %arg1: tensor<3x2x2x2xf32>) -> (tensor<1x3x4x7xf32> {jax.result_info = "result[0]"}, tensor<1x2x4x4xf32> {jax.result_info = "result[1]"}, tensor<1x2x4x4xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 0], [0, 1]], lhs_dilate = [1, 2], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x2x4x4xf32>, tensor<3x2x2x2xf32>) -> tensor<1x3x4x7xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x2x2x2xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.pad %arg0, %cst_0, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = "stablehlo.select_and_scatter"(%2, %1, %cst_1) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %6 = stablehlo.compare GE, %arg2, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    }, {
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %6 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }) : (tensor<1x2x4x4xf32>, tensor<1x2x2x2xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
    %4 = stablehlo.slice %3 [0:1, 0:2, 0:4, 0:4] : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %5 = call @cumsum(%arg0) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    return %0, %4, %5 : tensor<1x3x4x7xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
  }
  func.func private @cumsum(%arg0: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 0], [3, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 1, 1, 4>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
    return %1 : tensor<1x2x4x4xf32>
  }
})",
   "4d4cef520d537461626c65484c4f5f76312e31372e3000012b0501051b01030b03190f13171b1f23272b2f33373b03d19725014d0b0f1b0b0b0b131313131313131313131313"
   "1313131313131313131313131313131313131313034b0f2f2f0b0b0f4f0b1f0f0b2f8f0b17130b130b130b0b0b0b0b1e028f4f8f13131f1f2f8f0b0b01030f03230f1f070713"
   "131f1f170723171317131f0f025209051f110105030507030903052105230525170103031701050717012d0717012d3b17012f19170131151701331517013d0b170135151701"
   "353d170137191701390f170105351701056d170107151701091917010b1517010d1d17010f151701111d1701131517012515170127151701290b17011d1517011d3d17011f19"
   "1701210f170115151701153d170117191701190f1307051f0b1101000000000000001f0b11000000000000000003011d271307011f0d21020000000000000003000000000000"
   "001d291f0309000000001f1b0117011f0d1101000000000000001f0b410100000000000000010000000000000002000000000000000200000000000000231703076b6f730d03"
   "556d1d2b0d0355711d2d0d0355751d2f1d311d3323191d351f138100000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
   "0000000000030000000000000000000000000000001f0b4101000000000000000100000000000000010000000000000004000000000000001f0d210100000000000000020000"
   "00000000001f1d410100000000000000000000000000000000000000000000000100000000000000030561611f1f03001f03090000803f1f0309000080ff1f13110000000000"
   "0000001f0b41010000000000000002000000000000000400000000000000040000000000000009030705010202290109290905091111091d09290311072903090729090d0909"
   "09092909050d111d092905110907011105050f0711050511030503052903010729050909072903091529090509090909290115047a030501510d05010704520303010907500f"
   "0307041a0203172b050b251f27000f462905031105010305422b07030309462d090321030705422f0b03031146310d030505010b0542330f0303135635110305070d090f0b04"
   "5b03070b05074507470019464913032305010303044b030503070b05073d073f000b0641030305010303044303051546371503050311174639170305030103043b0705131507"
   "501119070479030913030b13000542150f030309461709030303030d56191b030505010507042d03070b05071d071f000b06210303050103030423030503041b030706030105"
   "0100fe0437110f0b1515150f21192529051711132d0f1f230f291119150f0b116275696c74696e0076686c6f006d6f64756c650072657475726e5f763100636f6e7374616e74"
   "5f76310066756e635f76310062726f6164636173745f696e5f64696d5f7631006164645f7631007265647563655f77696e646f775f763100636f6e766f6c7574696f6e5f7631"
   "007061645f76310073656c6563745f616e645f736361747465725f763100736c6963655f76310063616c6c5f763100636f6d706172655f7631002d006d686c6f2e6e756d5f70"
   "6172746974696f6e73006d686c6f2e6e756d5f7265706c69636173006a69745f77696e646f7773006a61782e726573756c745f696e666f0063756d73756d00726573756c745b"
   "305d00726573756c745b315d00726573756c745b325d006d61696e007075626c696300707269766174650008831d0517010b5367697779234d4d574d594d575983574d598587"
   "638963038b035f038d07515151035d078f65650593950791514f035b0b537b535b7d0b4f7f4f814f"},
  {"control, 1.13.0", R"(module @jit_control attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<4xui32>) -> (tensor<i32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}, tensor<4xf32> {jax.result_info = "result[3]"}, tensor<3xui32> {jax.result_info = "result[4]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.multiply %arg0, %c : tensor<i32>
    %1:2 = stablehlo.while(%iterArg = %arg0, %iterArg_5 = %0) : tensor<i32>, tensor<i32>
    cond {
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %11 = stablehlo.compare NE, %iterArg, %c_6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %c_6 = stablehlo.constant dense<2> : tensor<i32>
      %11 = func.call @remainder(%iterArg, %c_6) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %c_7 = stablehlo.constant dense<1> : tensor<i32>
      %12 = stablehlo.compare EQ, %11, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_8 = stablehlo.constant dense<3> : tensor<i32>
      %13 = stablehlo.multiply %c_8, %iterArg : tensor<i32>
      %c_9 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.add %13, %c_9 : tensor<i32>
      %c_10 = stablehlo.constant dense<2> : tensor<i32>
      %15 = func.call @floor_divide(%iterArg, %c_10) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %16 = func.call @_where(%12, %14, %15) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %c_11 = stablehlo.constant dense<1> : tensor<i32>
      %17 = stablehlo.add %iterArg_5, %c_11 : tensor<i32>
      stablehlo.return %16, %17 : tensor<i32>, tensor<i32>
    }
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.clamp %c_0, %arg0, %c_1 : tensor<i32>
    %cst = stablehlo.constant dense<5.000000e+00> : tensor<f32>
    %3 = "stablehlo.case"(%2) ({
      %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %11 = stablehlo.add %cst, %cst_5 : tensor<f32>
      stablehlo.return %11 : tensor<f32>
    }, {
      %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %11 = stablehlo.multiply %cst, %cst_5 : tensor<f32>
      stablehlo.return %11 : tensor<f32>
    }, {
      %11 = stablehlo.negate %cst : tensor<f32>
      stablehlo.return %11 : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.iota dim = 0 : tensor<4xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %6:4 = stablehlo.while(%iterArg = %4, %iterArg_5 = %c_4, %iterArg_6 = %cst_2, %iterArg_7 = %5) : tensor<4xf32>, tensor<i32>, tensor<f32>, tensor<4xf32>
    cond {
      %c_8 = stablehlo.constant dense<4> : tensor<i32>
      %11 = stablehlo.compare LT, %iterArg_5, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %11 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_5) : (tensor<4xf32>, tensor<i32>) -> tensor<f32>
      %12:2 = func.call @closed_call(%iterArg_6, %11) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %13 = func.call @dynamic_update_index_in_dim(%iterArg_7, %12#1, %iterArg_5) : (tensor<4xf32>, tensor<f32>, tensor<i32>) -> tensor<4xf32>
      %c_8 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.add %iterArg_5, %c_8 : tensor<i32>
      stablehlo.return %iterArg, %14, %12#0, %13 : tensor<4xf32>, tensor<i32>, tensor<f32>, tensor<4xf32>
    }
    %7 = stablehlo.reshape %arg1 : (tensor<4xui32>) -> tensor<2x2xui32>
    %8 = stablehlo.bitcast_convert %7 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state, %output = stablehlo.rng_bit_generator %8, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui32>)
    %9 = stablehlo.bitcast_convert %output_state : (tensor<2xui64>) -> tensor<2x2xui32>
    %10 = stablehlo.reshape %9 : (tensor<2x2xui32>) -> tensor<4xui32>
    return %1#1, %3, %6#2, %6#3, %output : tensor<i32>, tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<3xui32>
  }
  func.func private @remainder(%arg0: tensor<i32>, %arg1: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where(%1, %c_0, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.remainder %arg0, %2 : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.compare NE, %3, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.compare LT, %3, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.compare NE, %5, %6, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %8 = stablehlo.and %7, %4 : tensor<i1>
    %9 = stablehlo.add %3, %2 : tensor<i32>
    %10 = stablehlo.select %8, %9, %3 : tensor<i1>, tensor<i32>
    return %10 : tensor<i32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @floor_divide(%arg0: tensor<i32>, %arg1: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.divide %arg0, %0 : tensor<i32>
    %2 = stablehlo.sign %arg0 : tensor<i32>
    %3 = stablehlo.sign %0 : tensor<i32>
    %4 = stablehlo.compare NE, %2, %3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.remainder %arg0, %0 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.compare NE, %5, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.and %4, %6 : tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %8 = stablehlo.subtract %1, %c_0 : tensor<i32>
    %9 = call @_where(%7, %8, %1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    return %9 : tensor<i32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @closed_call(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.convert %arg0 : tensor<f32>
    %1 = stablehlo.add %0, %arg1 : tensor<f32>
    %2 = stablehlo.convert %arg0 : tensor<f32>
    %3 = stablehlo.multiply %2, %arg1 : tensor<f32>
    return %1, %3 : tensor<f32>, tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<4xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
})",
   "4d4cef520d537461626c65484c4f5f76312e31332e300001450501053501030b03330f13171b1f23272b2f33373b3f43474b4f53575b5f63676b6f036203ce023101af0b0f13"
   "13131313131b0b0b0b13131313131313131313131313131313131313131313131313131313131313131313131313131313131313131313131313131313131313131313131313"
   "1313131313131313131313131313035d0b0b1f1f0b0b0b0b0b1f0b0b0b0b0b0b0f0b1f0b1f130b130b130b130b130b0b0b0b0b0b0b2f0b1f0f0b1f1f1f1f015d131313131313"
   "1313131313131313131313131313131313131313131313131313131313131313131313131313131301030f032f0f0f130f13070707131317132b071b1f071b1f1f131307023a"
   "0c053911010517015f3917015f5717015f7d17015fa717010b3917010b5d030513031503053b053d053f1701030317010507170187071701ad071701b5071701d3071701dd07"
   "1701eb071701eb651701eb911701ebb91701ed151701ef151701f10b1701dd451701dd6d1701df151701e1151701e3151701e5151701e70b1701d3571701d3831701d5151701"
   "d7151701d90b1701b5471701b56f1701b7151701b9151701bb151701bd151701bf151701c1151701c3151701c5151701c7151701c9191701cb151701cd151701cf0b1701ad3b"
   "1701ad611701ad891701af151701b10b17018741170187691701891517018b1517018d1517018f19170191151701931517019519170197151701991917019b1517019d191701"
   "9f151701a1151701a3151701a5151701a7171701a90b170105351701055d170107151701091517010b1917013519170137191701391517013b1917013d15030109071f030900"
   "0000001f0309010000001d411d4307031d45070b1f030902000000231f1d471d491d4b1d4d1d4f1f2b0107011f050900000000231b030bd9dde1e5e90d03b9db1d510d03b9df"
   "1d530d03b9e31d550d03b9e71d570d03b9eb1d591d5b1d5d23212325232723291f2d11010000000000000009091f05090000a04013110119031f0309040000001f0509000000"
   "401f05090000803f1f030903000000170155151701571d1701591d17015b1517015d1917015f191701791517017b1517017d3d17017f15170181171701830b17016b1b17016d"
   "1f17016f1b1701711d1701731b1701750f1701631d1701651b1701670f17014f1b1701510f170147211701491b17014b0f17013f211701411b1701430f1701171d1701191b17"
   "011b1d17011d1b17011f1d1701211b1701231d1701251b1701271f1701291b17012b1b17012d1f17012f1b1701310f17010f1d1701111b1701130f01020229011d29010f2903"
   "110f2901232903110d25091d29030d0d2903050f290509090d2903092f1105030b0b03050507131b110503030303110709030303030111050703030511050505050505110707"
   "0503030729030111290305112704de0e0501511911010704b60e03011d0b501b030704f20703355305079b179d0003429f0503031106a103030501051f16a30503030501070b"
   "047a0203090f05070d070f000342c2020703030746c6020903090501050504ca020307031f3b05070d070f0003428a020b030309468e020d0303050105034292020703030746"
   "96020f030905070903429a0211030311069e020303050d010342a2020703030d06a6020303050f110342aa020b03030946ae021303030501150946b202150303070b13170342"
   "b6020703030d06ba02030305031b0504be0205191d0342a50503030342a70b03032b06a90303070d010f0342ab1703052d16ad030503110d03050d03427e021903050d068202"
   "030505133505048602033703050d034272021b030511067602030505133505047a02033703030933066a020305031305046e0203352f4216021d030703421a021f030503421e"
   "021f030515462202210307031b034226020503031f162a02090703050709171f191d0b04d5030d0f090f0507070b090f0b0003425e0223030307466202250309050309050466"
   "02030b03151b090f0507070b090f0b000946460227030505010309464a022905050505050909464e022b030707070d03034252020703030d065602030305031105045a020901"
   "130b0f13062e02031703032106320203190329314636022d051913032b21063a020317032d13063e02030b0331050442020b0b1525272f0b501d2f07042e0203254705077507"
   "77000f06790303030303427b05030307467d0f030905050703427f07030309468115030307090b05190683030305010d034285050303074687090309050f1103428905030307"
   "468b250309050f1503428d05030307468f250309050d1907469131030905171b1b06930309051d130d06950303050f0d1d06970303071f210f05049903230b501f3307043303"
   "090b07136b076d076f001d067103030701030505047303070b5021350704d7031d3705074d074f000f0651030303032706530303050105170655030303011706570303030507"
   "465909030905090b19065b030305010503425d05030307465f090309050f111b06610309050d13034263070303290665030305071709466715030307151907050469031b0b50"
   "233707043d03090f050f430745002546473903150501031306490305030505044b03070b50253b07045b030d17050b350b37000f0639030503010d063b03050505030f063d03"
   "05030111063f030505090305044105070b0b50273d070443030b0f070f290b2b072d0015462f2103150303230631030707010705050433030906030105010042095f0f0b1515"
   "15151539192b1b150f211119252905152b111113191523312713150f1b11291719170f11111715190f0b116275696c74696e0076686c6f006d6f64756c6500636f6e7374616e"
   "745f76310072657475726e5f763100636f6d706172655f76310063616c6c5f76310066756e635f7631006164645f763100636f6e766572745f7631006d756c7469706c795f76"
   "3100726573686170655f76310062726f6164636173745f696e5f64696d5f7631007369676e5f76310072656d61696e6465725f763100616e645f76310073656c6563745f7631"
   "007768696c655f763100626974636173745f636f6e766572745f76310064796e616d69635f7570646174655f736c6963655f76310064796e616d69635f736c6963655f763100"
   "6469766964655f76310073756274726163745f763100636c616d705f763100636173655f763100696f74615f763100726e675f6269745f67656e657261746f725f7631006e65"
   "676174655f7631002d006d686c6f2e6e756d5f706172746974696f6e73006d686c6f2e6e756d5f7265706c69636173006a69745f636f6e74726f6c0070726976617465006a61"
   "782e726573756c745f696e666f005f77686572650072656d61696e64657200666c6f6f725f6469766964650064796e616d69635f696e6465785f696e5f64696d00636c6f7365"
   "645f63616c6c0064796e616d69635f7570646174655f696e6465785f696e5f64696d00726573756c745b305d00726573756c745b315d00726573756c745b325d00726573756c"
   "745b335d00726573756c745b345d006d61696e007075626c69630008cb3f052f010bafd5d7edef03b303b505b1bb03c103c505b1d105120203c703bd03fd050e02050a0203ff"
   "03d303cf05060205b1bf03c903cb03cd0502020bafc3afc5b705fbbb0baff1afbdb70bafc3afc7b70baff3afc9b703f90baff5afcbb70baff7afcdb7"},
  {"constants, 1.0.0", R"(module @jit_constants attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<11xf32>) -> (tensor<11xf32> {jax.result_info = "result[0]"}, tensor<3xi32> {jax.result_info = "result[1]"}, tensor<1x2xbf16> {jax.result_info = "result[2]"}, tensor<11xi8> {jax.result_info = "result[3]"}, tensor<2xui8> {jax.result_info = "result[4]"}, tensor<9xi1> {jax.result_info = "result[5]"}, tensor<2x3xf16> {jax.result_info = "result[6]"}, tensor<11xf32> {jax.result_info = "result[7]"}, tensor<11xi1> {jax.result_info = "result[8]"}) {
    %c = stablehlo.constant dense<[true, false, true, true, false, false, true, false, true, true, true]> : tensor<11xi1>
    %c_0 = stablehlo.constant dense<[7, -3, 2147483647]> : tensor<3xi32>
    %cst = stablehlo.constant dense<[[1.500000e+00, -0.000000e+00]]> : tensor<1x2xbf16>
    %c_1 = stablehlo.constant dense<[200, 3]> : tensor<2xui8>
    %c_2 = stablehlo.constant dense<true> : tensor<9xi1>
    %cst_3 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %0 = call @_where(%c, %arg0, %cst_3) : (tensor<11xi1>, tensor<11xf32>, tensor<f32>) -> tensor<11xf32>
    %1 = stablehlo.convert %arg0 : (tensor<11xf32>) -> tensor<11xi8>
    %cst_4 = stablehlo.constant dense<0x7C00> : tensor<f16>
    %2 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f16>) -> tensor<2x3xf16>
    %3 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<11xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %5 = stablehlo.compare GT, %arg0, %4, FLOAT : (tensor<11xf32>, tensor<11xf32>) -> tensor<11xi1>
    return %0, %c_0, %cst, %1, %c_1, %c_2, %2, %3, %5 : tensor<11xf32>, tensor<3xi32>, tensor<1x2xbf16>, tensor<11xi8>, tensor<2xui8>, tensor<9xi1>, tensor<2x3xf16>, tensor<11xf32>, tensor<11xi1>
  }
  func.func private @_where(%arg0: tensor<11xi1>, %arg1: tensor<11xf32>, %arg2: tensor<f32>) -> tensor<11xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<11xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<11xi1>, tensor<11xf32>
    return %2 : tensor<11xf32>
  }
})",
   "4d4cef520d537461626c65484c4f5f76312e302e300001250501051501030b03130f13171b1f23272b2f03d1912d01410b0f1b0b0b0b13131313131313131313131313131313"
   "1313131313131313131303510b0b0f0b0b2f130b130b130b130b130b130b130b130b130b0b0b0b0b173f1f17131f170f0f1f0b0b01030f032b130f1313071713130713071707"
   "0f370707071f13070266050519110105030507030903051b051d051f1701030317010507170127071701273b17012767170127951701291517012b1517012d1517012f0b1701"
   "0535170107151701091917010b1917010d1917010f191701111d17011315170115151701171d1701191517011b1517011d1d17011f15170121151701230b1d2103011f29011d"
   "23231f03134d5155595d6165696d0d03414f1d250d0341531d270d0341571d290d03415b1d2b0d03415f1d2d0d0341631d2f0d0341671d310d03416b1d330d03416f1d351d37"
   "1d3923271d3b1f07054d071f091907000000fdffffffffffff7f1f0d09c03f00801f0f05c8031f1103ff1f05090000c07f1f1d05007c130b15130b291f050900000000090307"
   "0701020229032d1329011329032d1729030d0b1b290505092129030925290325170929032d23012905090d1b0729011b1103031303090d150f11190307051721110707030503"
   "032903012b1d04e6020501510d05010704be0203010907500f030704ed031f3f0307210003422305030703422507030903422709030d0342290b030f03422b0d031103422d0f"
   "03050f462f1103030703010d0906310315030103423313031d0546351503190313114637170303030103423919030505463b150303031913463d1b030705011b0b043f130f05"
   "0711090b15171d0750111d070451030d13070f1307150b17000906190305030505461b15030303070d061d0303070103090b041f030b06030105010072053d110f0b15151515"
   "15151515150f211d2529051729111515171129190f0b116275696c74696e0076686c6f006d6f64756c6500636f6e7374616e745f76310062726f6164636173745f696e5f6469"
   "6d5f76310066756e635f763100636f6e766572745f76310072657475726e5f76310073656c6563745f76310063616c6c5f7631007265647563655f707265636973696f6e5f76"
   "3100636f6d706172655f7631002d006d686c6f2e6e756d5f706172746974696f6e73006d686c6f2e6e756d5f7265706c69636173006a69745f636f6e7374616e7473006a6178"
   "2e726573756c745f696e666f005f776865726500726573756c745b305d00726573756c745b315d00726573756c745b325d00726573756c745b335d00726573756c745b345d00"
   "726573756c745b355d00726573756c745b365d00726573756c745b375d00726573756c745b385d006d61696e007075626c696300707269766174650008551f0517010b43494b"
   "71730379037b037d037f03810383034703850345058789038b058d8f0b4375434777"},
};
// clang-format on

}  // namespace lc::test
