// Complex numbers: arithmetic, functions, calls, loops, reducers, products, Fourier transforms. Results are NumPy's.
func.func @main() {
  %x = stablehlo.constant dense<[[(-2.486, -0.126), (-1.579, -2.042), (1.808, 1.407)], [(0.493, -2.318), (-2.435, -0.653), (-0.401, 0.1)]]> : tensor<2x3xcomplex<f64>>
  %y = stablehlo.constant dense<[[(-0.416, 1.177), (0.521, -1.244), (1.427, -2.991)], [(2.738, 2.841), (-1.295, -1.21), (0.891, -1.116)]]> : tensor<2x3xcomplex<f64>>
  %sum = stablehlo.add %x, %y : tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %sum, dense<[[(-2.902, 1.0510000000000002), (-1.0579999999999998, -3.2859999999999996), (3.2350000000000003, -1.584)], [(3.231, 0.5230000000000001), (-3.73, -1.863), (0.49, -1.016)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %product = stablehlo.multiply %x, %y : tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %product, dense<[[(1.1824780000000001, -2.8736060000000005), (-3.3629069999999994, 0.9003939999999999), (6.788353000000001, -3.3999390000000003)], [(7.935272, -4.946071), (2.3631949999999997, 3.791985), (-0.24569100000000002, 0.5366160000000001)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %quotient = stablehlo.divide %x, %y : tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %quotient, dense<[[(0.568456446898552, 1.9112337451913362), (0.9442609774615072, -1.6647588177310655), (-0.14826627306756895, 0.6752176434862657)], [(-0.3363071186429791, -0.4976448049434976), (1.2554275936169368, -0.6687779060050143), (-0.2299232544694673, -0.1757512367990185)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %power = stablehlo.power %x, %y : tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %power, dense<[[(-18.450832518386136, 18.33987493462302), (-0.07129998168874063, -0.07350237919984971), (0.8262944043941973, -23.577940805973544)], [(147.58805097135652, -485.6658625463559), (-0.00798555003823717, 0.0046937048151751495), (-10.51041525500243, -4.76877364558927)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %e = stablehlo.exponential %x : tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %e, dense<[[(0.08258236720805169, -0.010460795478083504), (-0.0935978241076666, -0.18371207035211606), (0.9944086123641591, 6.016615939637045)], [(-1.1126387866077831, -1.2010520247656993), (0.06957579474792842, -0.05322193225625715), (0.6663046000114291, 0.06685345355117403)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %l = stablehlo.log %x : tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %l, dense<[[(0.9119577714436822, -3.090952157102954), (0.9482852919964228, -2.2290193475038156), (0.8289723991944047, 0.6613111524589879)], [(0.8628252355461777, -1.3612355142550236), (0.9246708318153528, -2.8795849429934575), (-0.883628071421935, 2.8972008448556523)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %s = stablehlo.sqrt %x : tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %s, dense<[[(0.03994391848297361, -1.5772113100735028), (0.7079123255667067, -1.442268997340393), (1.4316010852354966, 0.49140784206954913)], [(1.1964210420059846, -0.96872251432218), (0.2074105568315239, -1.57417252519702), (0.07836062859772726, 0.6380755348030757)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %th = stablehlo.tanh %x : tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %th, dense<[[(-0.9866627692180616, -0.0034095858034379673), (-1.0487113513960922, 0.07226116400847307), (1.0520885422547577, 0.018219057076182335)], [(0.7954093958194782, 0.6874241080233474), (-0.9958825844116446, -0.014751715056035175), (-0.38407715833048417, 0.08565990112837385)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %si = stablehlo.sine %x : tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %si, dense<[[(-0.6144747808273475, 0.10014302128446363), (-3.9177555243796247, 0.031076137232484643), (2.1036790588514034, -0.4510322850375496)], [(2.426415108968316, -4.429635244404789), (-0.7926573096481913, 0.5327145361107566), (-0.39229253143779136, 0.09222063344623067)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %sg = stablehlo.sign %x : tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %sg, dense<[[(-0.998718044053298, -0.05061885500833288), (-0.6117120848711193, -0.791080479611669), (0.7891876630136542, 0.6141521249226832)], [(0.20803034084208596, -0.9781223733711061), (-0.9658718874222056, -0.25902026385490773), (-0.970284666176505, 0.24196625091683416)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %ac = chlo.acos %x : tensor<2x3xcomplex<f64>> -> tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %ac, dense<[[(3.086305190168035, 1.562338640905212), (2.193846529482694, 1.6525885642519653), (0.7088053103862019, -1.5136258575160566)], [(1.3773901843341603, 1.594738567168587), (2.857670096622223, 1.5826153121396969), (1.980826752617369, -0.10882341143480867)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %ath = chlo.atanh %x : tensor<2x3xcomplex<f64>> -> tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %ath, dense<[[(-0.4248689305335558, -1.5465662252641794), (-0.21907503792907762, -1.2583991194641744), (0.3302512171308938, 1.2782924457273015)], [(0.07507348938905581, -1.1770257687170649), (-0.3982517842909806, -1.4512027498955407), (-0.4192381090320494, 0.11833806303938649)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %a = stablehlo.abs %x : (tensor<2x3xcomplex<f64>>) -> tensor<2x3xf64>
  check.expect_almost_eq_const %a, dense<[[2.489191033247549, 2.581279721378526, 2.290963334494902], [2.3698466195093726, 2.5210382781703258, 0.4132807762284619]]> : tensor<2x3xf64> {tolerance = 1.0e-12 : f64}
  %re = stablehlo.real %x : (tensor<2x3xcomplex<f64>>) -> tensor<2x3xf64>
  %im = stablehlo.imag %x : (tensor<2x3xcomplex<f64>>) -> tensor<2x3xf64>
  %turned = stablehlo.complex %im, %re : tensor<2x3xcomplex<f64>>
  check.expect_eq_const %turned, dense<[[(-0.126, -2.486), (-2.042, -1.579), (1.407, 1.808)], [(-2.318, 0.493), (-0.653, -2.435), (0.1, -0.401)]]> : tensor<2x3xcomplex<f64>>
  %same = stablehlo.compare EQ, %x, %y : (tensor<2x3xcomplex<f64>>, tensor<2x3xcomplex<f64>>) -> tensor<2x3xi1>
  check.expect_eq_const %same, dense<false> : tensor<2x3xi1>
  %w = stablehlo.constant dense<[[(2.35, -0.755), (0.511, -2.455)], [(-0.172, 0.963), (1.64, 2.589)], [(-2.818, -1.757), (1.242, 0.781)]]> : tensor<3x2xcomplex<f64>>
  %dot = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xcomplex<f64>>, tensor<3x2xcomplex<f64>>) -> tensor<2x2xcomplex<f64>>
  check.expect_almost_eq_const %dot, dense<[[(-6.322041000000001, -6.730105), (2.2641709999999993, 1.7613750000000012)], [(1.761837, -7.629347), (-8.317692000000001, -9.958929)]]> : tensor<2x2xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f64>>
  %one = stablehlo.constant dense<(1.0, 0.0)> : tensor<complex<f64>>
  %total = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<2xcomplex<f64>>
  check.expect_almost_eq_const %total, dense<[(-2.2570000000000006, -0.7609999999999997), (-2.343, -2.871)]> : tensor<2xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %prod = stablehlo.reduce(%x init: %one) applies stablehlo.multiply across dimensions = [0] : (tensor<2x3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
  check.expect_almost_eq_const %prod, dense<[(-1.5176660000000002, 5.700430000000001), (2.511439, 6.003357), (-0.865708, -0.383407)]> : tensor<3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %called = call @turn(%x) : (tensor<2x3xcomplex<f64>>) -> tensor<2x3xcomplex<f64>>
  check.expect_almost_eq_const %called, dense<[[(-0.126, -2.486), (-2.042, -1.579), (1.407, 1.808)], [(-2.318, 0.493), (-0.653, -2.435), (0.1, -0.401)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %begin = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<5> : tensor<i32>
  %step = stablehlo.constant dense<1> : tensor<i32>
  %loop:2 = stablehlo.while(%k = %begin, %z = %x) : tensor<i32>, tensor<2x3xcomplex<f64>>
   cond {
    %go = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %k, %step : tensor<i32>
    %square = stablehlo.multiply %z, %z : tensor<2x3xcomplex<f64>>
    %half = stablehlo.constant dense<(0.25, 0.1)> : tensor<2x3xcomplex<f64>>
    %smaller = stablehlo.multiply %square, %half : tensor<2x3xcomplex<f64>>
    stablehlo.return %next, %smaller : tensor<i32>, tensor<2x3xcomplex<f64>>
  }
  check.expect_almost_eq_const %loop#1, dense<[[(6.740975437981685e-06, 7.670733608906505e-06), (-3.2252501248028865e-05, -5.116869425962916e-06), (2.0853449864637252e-08, 7.171929798643147e-07)], [(1.99275808974688e-06, -7.22702289969453e-07), (3.6520630554780972e-06, 1.489732058186277e-05), (-7.63149196036293e-31, -8.404528927015767e-31)]]> : tensor<2x3xcomplex<f64>> {tolerance = 1.0e-4 : f64}
  %f = stablehlo.constant dense<[(-1.211, 2.099), (1.451, -0.636), (1.333, -0.122), (-1.688, -2.122), (1.979, 1.191), (0.946, -1.248), (1.097, 2.227), (1.92, -1.348), (-0.429, 0.371), (1.552, -0.602), (2.271, 0.677), (-2.386, -1.82)]> : tensor<12xcomplex<f64>>
  %fft = stablehlo.fft %f, type = FFT, length = [12] : (tensor<12xcomplex<f64>>) -> tensor<12xcomplex<f64>>
  check.expect_almost_eq_const %fft, dense<[(6.835, -1.3329999999999989), (-5.432576026305178, 0.025186212966696875), (-2.052823591024675, 2.1967727834557973), (-1.5579999999999994, -5.223999999999999), (-1.4516333335706624, -3.9946692186696655), (1.1145760263051772, 2.3288137870333037), (3.2449999999999997, 14.219000000000001), (2.9069490932641235, -3.8343009000929458), (-6.133366666429337, 10.133669218669667), (-7.1659999999999995, 6.982), (-1.1261764089753252, 4.734227216544205), (-3.7129490932641236, -1.045699099907054)]> : tensor<12xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %ifft = stablehlo.fft %f, type = IFFT, length = [12] : (tensor<12xcomplex<f64>>) -> tensor<12xcomplex<f64>>
  check.expect_almost_eq_const %ifft, dense<[(0.5695833333333333, -0.11108333333333323), (-0.309412424438677, -0.08714159165892113), (-0.09384803408127709, 0.39451893471201693), (-0.5971666666666666, 0.5818333333333332), (-0.5111138888691114, 0.8444724348891388), (0.24224575777201032, -0.3195250750077455), (0.27041666666666664, 1.1849166666666666), (0.09288133552543146, 0.19406781558610864), (-0.12096944446422186, -0.3328891015558054), (-0.12983333333333327, -0.43533333333333324), (-0.17106863258538957, 0.18306439862131657), (-0.45271466885876477, 0.0020988510805581653)]> : tensor<12xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %g = stablehlo.constant dense<[[-1.918, 1.481, 1.513, 0.402, 2.526, -1.765, 2.105, -1.986], [2.786, 0.742, 0.641, 2.823, 1.722, 1.74, -2.675, -0.784]]> : tensor<2x8xf64>
  %rfft = stablehlo.fft %g, type = RFFT, length = [2, 8] : (tensor<2x8xf64>) -> tensor<2x5xcomplex<f64>>
  check.expect_almost_eq_const %rfft, dense<[[(9.353, 0.0), (-6.029529109105994, -8.55268119732071), (3.532, -1.7430000000000008), (-0.7304708908940061, -3.1046811973207107), (4.047, 0.0)], [(-4.6370000000000005, 0.0), (-1.6450756543778908, 1.7690019869106934), (-9.552, -0.8569999999999998), (-9.37092434562211, -6.046998013089306), (8.140999999999998, 0.0)]]> : tensor<2x5xcomplex<f64>> {tolerance = 1.0e-12 : f64}
  %back = stablehlo.fft %rfft, type = IRFFT, length = [2, 8] : (tensor<2x5xcomplex<f64>>) -> tensor<2x8xf64>
  check.expect_almost_eq %back, %g, tolerance = 1.0e-12 : tensor<2x8xf64>
  %whole = stablehlo.convert %im : (tensor<2x3xf64>) -> tensor<2x3xcomplex<f64>>
  check.expect_eq_const %whole, dense<[[(-0.126, 0.0), (-2.042, 0.0), (1.407, 0.0)], [(-2.318, 0.0), (-0.653, 0.0), (0.1, 0.0)]]> : tensor<2x3xcomplex<f64>>
  return
}
func.func private @turn(%x: tensor<2x3xcomplex<f64>>) -> tensor<2x3xcomplex<f64>> {
  %y = chlo.conj %x : tensor<2x3xcomplex<f64>> -> tensor<2x3xcomplex<f64>>
  %i = stablehlo.constant dense<(0.0, 1.0)> : tensor<2x3xcomplex<f64>>
  %z = stablehlo.multiply %y, %i : tensor<2x3xcomplex<f64>>
  return %z : tensor<2x3xcomplex<f64>>
}
