#!/usr/bin/env python3
"""lightcone_pjrt.so works for a client that shares no code with it: layouts, strides, donation, wrong programs, any order of
destruction.

The client calls it by positions in PJRT's table and by offsets in its structures, as measured in version 0.81 of its header.
"""
import ctypes
import shutil
import struct
import subprocess
import sys

PLUGIN = sys.argv[1]
INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE, UNIMPLEMENTED = 3, 5, 11, 12
F32, S32, PRED, C64 = 11, 4, 1, 14

(ERROR_DESTROY, ERROR_MESSAGE, ERROR_CODE, INITIALISE, ATTRIBUTES, EVENT_DESTROY, EVENT_READY, EVENT_ERROR, EVENT_AWAIT,
 EVENT_ON_READY, CLIENT_CREATE, CLIENT_DESTROY, PLATFORM, PROCESS, PLATFORM_VERSION, DEVICES, ADDRESSABLE, LOOKUP) = range(18)
MEMORIES, COMPILE, ASSIGNMENT, FROM_HOST = 19, 20, 21, 22
DESCRIPTION_ID, DESCRIPTION_KIND, DESCRIPTION_TEXT, DESCRIPTION, DEVICE_MEMORY, STATS = 23, 26, 28, 29, 33, 34
MEMORY_KIND, EXE_DESTROY, EXE_NAME, NUM_OUTPUTS, COST, OPTIMISED, SERIALIZE = 36, 40, 41, 44, 46, 48, 49
LOADED_DESTROY, GET_EXECUTABLE, LOADED_DEVICES, LOADED_DELETE, LOADED_DELETED, EXECUTE, DESERIALIZE = 50, 51, 52, 53, 54, 55, 56
(BUFFER_DESTROY, ELEMENT_TYPE, DIMENSIONS, UNPADDED, DYNAMIC, LAYOUT, SIZE, BUFFER_DEVICE, BUFFER_MEMORY, DELETE, DELETED,
 COPY_TO_DEVICE, TO_HOST, ON_CPU, READY_EVENT, POINTER) = range(58, 74)
CREATE_VIEW = 93
OUTPUT_TYPES, OUTPUT_DIMS, COPY_TO_MEMORY, FINGERPRINT, TOPOLOGY, MEMORY_STATS = 90, 91, 92, 94, 95, 96
RAW_TO_HOST, DEVICE_ASSIGNMENT, COUNT = 100, 117, 118

library = ctypes.CDLL(PLUGIN, mode=ctypes.RTLD_LOCAL)
library.GetPjrtApi.restype = ctypes.c_void_p
TABLE = library.GetPjrtApi()
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
alive = []  # what the plugin reads must not be collected


def memory(address, size):
    return ctypes.string_at(address, size)


def word(address):
    return struct.unpack("<Q", memory(address, 8))[0]


class Failed(Exception):
    def __init__(self, code, message):
        super().__init__("%d: %s" % (code, message))
        self.code, self.message = code, message


class Args:
    """A structure: its size, and fields put at their offsets."""

    def __init__(self, size, fields=()):
        self.data = ctypes.create_string_buffer(size)
        self.put(0, struct.pack("<Q", size))
        for offset, value in fields:
            self.put(offset, value)

    def put(self, offset, value):
        if isinstance(value, int):
            value = struct.pack("<q" if value < 0 else "<Q", value)
        elif not isinstance(value, bytes):
            alive.append(value)
            value = struct.pack("<Q", ctypes.addressof(value))
        self.data[offset:offset + len(value)] = value

    def word(self, offset):
        return struct.unpack_from("<Q", self.data, offset)[0]

    def int(self, offset):
        return struct.unpack_from("<i", self.data, offset)[0]

    def text(self, offset=24):
        return memory(self.word(offset), self.word(offset + 8)).decode()


def raw(index, args):
    return FUNCTION(word(TABLE + 40 + 8 * index))(ctypes.addressof(args.data) if args else None)


def call(index, size, *fields):
    args = Args(size, fields)
    error = raw(index, args)
    if error:
        said = Args(40, [(16, error)])
        raw(ERROR_MESSAGE, said)
        code = Args(28, [(16, error)])
        assert not raw(ERROR_CODE, code)
        failed = Failed(code.int(24), said.text())
        raw(ERROR_DESTROY, Args(24, [(16, error)]))
        raise failed
    return args


def fails(code, *args):
    try:
        call(*args)
    except Failed as e:
        assert e.code == code, e
        assert e.message, "an error says something"
        return e.message
    raise AssertionError("function %d did not fail" % args[0])


def await_and_destroy(event):
    call(EVENT_AWAIT, 24, (16, event))
    call(EVENT_DESTROY, 24, (16, event))


def words(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def from_host(client, device, data, kind, dims, strides=None):
    bytes_ = ctypes.create_string_buffer(data, max(len(data), 1))
    args = call(FROM_HOST, 120, (16, client), (24, bytes_), (32, struct.pack("<i", kind)), (40, words(dims)),
                (48, len(dims)), *([(56, words(strides)), (64, len(strides))] if strides else []), (80, device))
    await_and_destroy(args.word(104))
    return args.word(112)


def tiled(minor_to_major):
    return Args(80, [(16, 56), (32, words(minor_to_major)), (40, len(minor_to_major))])


def to_host(buffer, minor_to_major=None):
    layout = [(24, tiled(minor_to_major).data)] if minor_to_major is not None else []
    size = call(TO_HOST, 56, (16, buffer), *layout).word(40)
    data = ctypes.create_string_buffer(max(size, 1))
    await_and_destroy(call(TO_HOST, 56, (16, buffer), *layout, (32, data), (40, size)).word(48))
    return data.raw[:size]


def compile_text(client, text, form=b"mlir", options=b""):
    code, name, proto = (ctypes.create_string_buffer(b, max(len(b), 1)) for b in (text, form, options))
    program = Args(48, [(16, code), (24, len(text)), (32, name), (40, len(form))])
    return call(COMPILE, 56, (16, client), (24, program.data), (32, proto), (40, len(options))).word(48)


def execute(program, arguments, results, kept=(), events=True):
    inner = (ctypes.c_void_p * max(len(arguments), 1))(*arguments)
    out = (ctypes.c_void_p * max(results, 1))()
    done = (ctypes.c_void_p * 1)()
    options = Args(112, [(56, words(kept)), (64, len(kept))])
    call(EXECUTE, 80, (16, program), (24, options.data), (32, words([ctypes.addressof(inner)])), (40, 1),
         (48, len(arguments)), (56, words([ctypes.addressof(out)])), *([(64, done)] if events else []))
    if events:
        await_and_destroy(done[0])
    return list(out[:results])


def floats(data):
    return list(struct.unpack("<%df" % (len(data) // 4), data))


PROGRAM = b"""module @two {
  func.func public @main(%a: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2x3xf32>)
      -> (tensor<2x3xf32>, tensor<3x2xf32>) {
    %0 = "stablehlo.add"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = "stablehlo.transpose"(%b) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %0, %1 : tensor<2x3xf32>, tensor<3x2xf32>
  }
}
"""
OPTIONS = bytes.fromhex("1a0f08ffffffffffffffffff01200128012001")


def test_table():
    assert word(TABLE) >= 40 + 8 * COUNT
    major, minor = struct.unpack("<ii", memory(TABLE + 32, 8))
    assert (major, minor) == (0, 81), (major, minor)
    call(INITIALISE, 16)
    attributes = call(ATTRIBUTES, 32)
    names = [memory(word(attributes.word(16) + 56 * k + 16), word(attributes.word(16) + 56 * k + 24)).decode()
             for k in range(attributes.word(24))]
    assert "stablehlo_current_version" in names, names


def test_no_function_breaks():
    """Of every function: no arguments, too few, and no object are an error with a sentence."""
    for index in range(COUNT):
        assert word(TABLE + 40 + 8 * index), "function %d is there" % index
        for args in (None, Args(8), Args(256)):
            if args and index != ERROR_DESTROY:
                args.put(0, struct.pack("<Q", 0 if len(args.data) == 8 else 256))
            error = raw(index, args) if index not in (ERROR_DESTROY, ERROR_MESSAGE) else None
            if error:
                said = Args(40, [(16, error)])
                raw(ERROR_MESSAGE, said)
                assert said.text(), index
                raw(ERROR_DESTROY, Args(24, [(16, error)]))
            elif len(args.data if args else b"") == 256 and index in (EXECUTE, COMPILE, TO_HOST, GET_EXECUTABLE):
                raise AssertionError("function %d took no object for one" % index)
    for index in (SERIALIZE, DESERIALIZE, STATS, 45, 89, 98, 103, 112, 116):
        assert "does not implement" in fails(UNIMPLEMENTED, index, 256)


def test_sizes():
    """A structure that says a size smaller than what is read of it is left alone, whichever it is."""
    error = raw(CLIENT_CREATE, Args(8, [(0, 8)]))
    assert error, "a structure of 8 bytes is too small"
    said = Args(40, [(0, 24), (16, error)])
    raw(ERROR_MESSAGE, said)
    assert said.word(24) == said.word(32) == 0, "a message was written behind its structure"
    raw(ERROR_DESTROY, Args(24, [(0, 16), (16, error)]))
    said = Args(40, [(16, error)])
    raw(ERROR_MESSAGE, said)
    assert "fewer than" in said.text()
    raw(ERROR_DESTROY, Args(24, [(16, error)]))
    assert not raw(ERROR_MESSAGE, None) and not raw(ERROR_DESTROY, None)
    for index in range(COUNT):
        for size in (0, 8, 16):
            error = raw(index, Args(160, [(0, size)]))
            if error and index not in (ERROR_DESTROY, ERROR_MESSAGE):
                raw(ERROR_DESTROY, Args(24, [(16, error)]))


def test_sizes_within(client, device):
    """The same of structures that others point at."""
    program = Args(48, [(0, 32), (16, words([0])), (24, 0)])
    assert "the program has 32 bytes" in fails(INVALID_ARGUMENT, COMPILE, 56, (16, client), (24, program.data))
    option = Args(56, [(0, 24)])
    assert "an option has 24 bytes" in fails(INVALID_ARGUMENT, CLIENT_CREATE, 72, (16, option.data), (24, 1))
    buffer = from_host(client, device, struct.pack("<2f", 1, 2), F32, [2])
    room = ctypes.create_string_buffer(8)
    for fields in ([(0, 72), (16, 56)], [(0, 80), (16, 32)]):
        layout = Args(80, fields)
        assert "a layout" in fails(INVALID_ARGUMENT, TO_HOST, 56, (16, buffer), (24, layout.data), (32, room), (40, 8))
    call(BUFFER_DESTROY, 24, (16, buffer))


def test_client():
    client = call(CLIENT_CREATE, 88).word(64)
    assert call(PLATFORM, 40, (16, client)).text() == "lightcone"
    assert call(PLATFORM_VERSION, 40, (16, client)).text().startswith("lightcone ")
    assert call(PROCESS, 28, (16, client)).int(24) == 0
    for index in (DEVICES, ADDRESSABLE, MEMORIES):
        assert call(index, 40, (16, client)).word(32) == 1
    device = word(call(DEVICES, 40, (16, client)).word(24))
    assert call(LOOKUP, 40, (16, client)).word(32) == device
    fails(NOT_FOUND, LOOKUP, 40, (16, client), (24, struct.pack("<i", 3)))
    description = call(DESCRIPTION, 32, (16, device)).word(24)
    assert call(DESCRIPTION_ID, 28, (16, description)).int(24) == 0
    assert call(DESCRIPTION_KIND, 40, (16, description)).text() == "cpu"
    assert call(DESCRIPTION_TEXT, 40, (16, description)).text() == "LightconeDevice(id=0)"
    assert call(MEMORY_KIND, 40, (16, call(DEVICE_MEMORY, 32, (16, device)).word(24))).text() == "device"
    room = (ctypes.c_int * 1)(7)
    call(ASSIGNMENT, 48, (16, client), (24, struct.pack("<ii", 1, 1)), (32, 1), (40, room))
    assert room[0] == 0
    fails(INVALID_ARGUMENT, ASSIGNMENT, 48, (16, client), (24, struct.pack("<ii", 2, 1)), (32, 2), (40, room))
    assert call(TOPOLOGY, 32, (16, client)).word(24)
    name = ctypes.create_string_buffer(b"frobnicate")
    option = Args(56, [(16, name), (24, 10), (32, struct.pack("<i", 1)), (40, 2), (48, 1)])
    assert "frobnicate" in fails(INVALID_ARGUMENT, CLIENT_CREATE, 88, (16, option.data), (24, 1))
    call(CLIENT_DESTROY, 24, (16, client))
    return device


def test_buffers(client, device):
    numbers = list(range(24))
    data = struct.pack("<24f", *numbers)
    b = from_host(client, device, data, F32, [2, 3, 4])
    assert call(ELEMENT_TYPE, 28, (16, b)).int(24) == F32
    for index in (DIMENSIONS, UNPADDED):
        dims = call(index, 40, (16, b))
        assert [word(dims.word(24) + 8 * k) for k in range(dims.word(32))] == [2, 3, 4]
    assert call(DYNAMIC, 40, (16, b)).word(32) == 0
    assert call(SIZE, 32, (16, b)).word(24) == 96
    assert call(BUFFER_DEVICE, 32, (16, b)).word(24) == device
    assert call(ON_CPU, 25, (16, b)).data[24] == b"\x01"
    layout = call(LAYOUT, 104, (16, b))
    assert [word(layout.word(24 + 32) + 8 * k) for k in range(layout.word(24 + 40))] == [2, 1, 0]
    assert memory(call(POINTER, 32, (16, b)).word(24), 96) == data
    assert to_host(b) == data and to_host(b, [2, 1, 0]) == data
    turned = [numbers[i * 12 + j * 4 + k] for k in range(4) for i in range(2) for j in range(3)]
    assert floats(to_host(b, [1, 0, 2])) == turned
    fails(INVALID_ARGUMENT, TO_HOST, 56, (16, b), (24, tiled([0, 0, 1]).data), (32, ctypes.create_string_buffer(96)), (40, 96))
    fails(INVALID_ARGUMENT, TO_HOST, 56, (16, b), (32, ctypes.create_string_buffer(4)), (40, 4))
    part = ctypes.create_string_buffer(8)
    await_and_destroy(call(RAW_TO_HOST, 56, (16, b), (24, part), (32, 4), (40, 8)).word(48))
    assert floats(part.raw) == [1, 2]
    fails(OUT_OF_RANGE, RAW_TO_HOST, 56, (16, b), (24, part), (32, 92), (40, 8))
    ready = call(READY_EVENT, 32, (16, b)).word(24)
    assert call(EVENT_READY, 25, (16, ready)).data[24] == b"\x01"
    call(EVENT_ERROR, 24, (16, ready))
    seen = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda e, user: seen.append((e, user)))
    call(EVENT_ON_READY, 40, (16, ready), (24, ctypes.cast(callback, ctypes.c_void_p).value), (32, 77))
    assert seen == [(None, 77)]
    call(EVENT_DESTROY, 24, (16, ready))
    columns = from_host(client, device, data, F32, [4, 6], [4, 16])  # by columns
    assert floats(to_host(columns)) == [numbers[i + 4 * j] for i in range(4) for j in range(6)]
    memory_ = call(BUFFER_MEMORY, 32, (16, b)).word(24)
    copy = call(COPY_TO_MEMORY, 40, (16, b), (24, memory_)).word(32)
    fails(INVALID_ARGUMENT, COPY_TO_DEVICE, 40, (16, b), (24, device))
    call(DELETE, 24, (16, b))
    assert call(DELETED, 25, (16, b)).data[24] == b"\x01"
    assert "deleted" in fails(INVALID_ARGUMENT, TO_HOST, 56, (16, b))
    assert to_host(copy) == data
    empty = from_host(client, device, b"", PRED, [0, 5])
    assert to_host(empty, [1, 0]) == b""
    scalar = from_host(client, device, struct.pack("<i", -5), S32, [])
    assert struct.unpack("<i", to_host(scalar, [])) == (-5,)
    some = ctypes.create_string_buffer(8)
    for kind, dims, code in ((11, [-1], INVALID_ARGUMENT), (18, [2], UNIMPLEMENTED), (99, [2], UNIMPLEMENTED),
                             (11, [1 << 40, 1 << 40], 8), (11, [1 << 62], 8), (2, [1 << 60], 8)):
        fails(code, FROM_HOST, 120, (16, client), (24, some), (32, struct.pack("<i", kind)), (40, words(dims)),
              (48, len(dims)), (80, device))
    own = (ctypes.c_float * 6)(1, 2, 3, 4, 5, 6)  # a view of the client's memory
    gone = []
    tell = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda data, user: gone.append((data, user)))
    def view(address):
        return call(CREATE_VIEW, 104, (16, client), (24, address), (32, words([2, 3])), (40, 2), (48, struct.pack("<i", F32)),
                    (64, device), (72, ctypes.cast(tell, ctypes.c_void_p).value), (80, 5)).word(96)
    shown = view(ctypes.addressof(own))
    own[1] = -2
    assert floats(to_host(shown)) == [1, -2, 3, 4, 5, 6] and not gone
    call(BUFFER_DESTROY, 24, (16, shown))
    assert gone == [(ctypes.addressof(own), 5)]
    try:
        view(ctypes.addressof(own) + 1)
        raise AssertionError("a view between two elements")
    except Failed as e:
        assert e.code == INVALID_ARGUMENT
    for buffer in (b, copy, columns, empty, scalar):
        call(BUFFER_DESTROY, 24, (16, buffer))


def test_programs(client, device):
    program = compile_text(client, PROGRAM, options=OPTIONS)
    exe = call(GET_EXECUTABLE, 32, (16, program)).word(24)
    assert call(EXE_NAME, 40, (16, exe)).text() == "two"
    assert call(NUM_OUTPUTS, 32, (16, exe)).word(24) == 2
    types = call(OUTPUT_TYPES, 40, (16, exe))
    assert struct.unpack("<2i", memory(types.word(24), 8)) == (F32, F32) and types.word(32) == 2
    dims = call(OUTPUT_DIMS, 48, (16, exe))
    assert dims.word(24) == 2 and struct.unpack("<4q", memory(dims.word(32), 32)) == (2, 3, 3, 2)
    assert struct.unpack("<2q", memory(dims.word(40), 16)) == (2, 2)
    assert len(call(FINGERPRINT, 40, (16, exe)).text()) == 16
    assert call(COST, 40, (16, exe)).word(24) >= 1
    stats = call(MEMORY_STATS, 112, (16, exe))
    assert [stats.word(24 + 8 * k) for k in range(4)] == [0, 48, 48, 24] and stats.word(56) > 0
    shown = Args(48)
    call(OPTIMISED, 32, (16, exe), (24, shown.data))
    code = ctypes.create_string_buffer(shown.word(24))
    shown.put(16, code)
    call(OPTIMISED, 32, (16, exe), (24, shown.data))
    assert shown.text(32) == "lightcone" and code.raw.strip(b"\0")

    a, b = [1.0, 2, 3, 4, 5, 6], [10.0, 20, 30, 40, 50, 60]
    sums, turned = [11.0, 22, 33, 44, 55, 66], [10.0, 40, 20, 50, 30, 60]
    def arguments():
        return [from_host(client, device, struct.pack("<6f", *v), F32, [2, 3]) for v in (a, b)]
    x = arguments()
    y = execute(program, x, 2)
    assert floats(to_host(y[0])) == sums and floats(to_host(y[1])) == turned
    assert call(DELETED, 25, (16, x[0])).data[24] == b"\x01" and call(DELETED, 25, (16, x[1])).data[24] == b"\0"
    kept = arguments()
    y2 = execute(program, kept, 2, kept=[0], events=False)
    assert floats(to_host(y2[0])) == sums and floats(to_host(kept[0])) == a
    twice = execute(program, [kept[1], kept[1]], 2)  # donated, and read beside that
    assert floats(to_host(twice[0])) == [2 * v for v in b] and floats(to_host(twice[1])) == turned
    wrong = from_host(client, device, struct.pack("<6f", *a), F32, [3, 2])
    for arguments_ in ([y[0]], [y[0], wrong], [y[0], x[0]]):
        try:
            execute(program, arguments_, 2)
            raise AssertionError("arguments that do not fit")
        except Failed as e:
            assert e.code == INVALID_ARGUMENT, e
    assigned = call(DEVICE_ASSIGNMENT, 56, (16, program))  # one replica, one computation, on device 0
    assert memory(assigned.word(24), assigned.word(32)) == b"\x08\x01\x10\x01\x1a\x03\x0a\x01\x00"
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(assigned.word(48))(assigned.word(40))
    call(LOADED_DELETE, 24, (16, program))
    assert call(LOADED_DELETED, 25, (16, program)).data[24] == b"\x01"
    fails(INVALID_ARGUMENT, GET_EXECUTABLE, 32, (16, program))
    assert call(NUM_OUTPUTS, 32, (16, exe)).word(24) == 2  # what describes it is there still
    call(EXE_DESTROY, 24, (16, exe))
    call(LOADED_DESTROY, 24, (16, program))
    return y


# Elements are pairs of numbers: the client's bytes as they are, in and out.
def test_complex(client, device):
    program = compile_text(client, b"""func.func public @main(%z: tensor<3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>, tensor<3xf32>) {
      %0 = stablehlo.multiply %z, %z : tensor<3xcomplex<f32>>
      %1 = stablehlo.abs %z : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
      return %0, %1 : tensor<3xcomplex<f32>>, tensor<3xf32>
    }""")
    z = from_host(client, device, struct.pack("<6f", 1, 2, 3, 4, -1, 0), C64, [3])
    assert floats(to_host(z)) == [1, 2, 3, 4, -1, 0]
    square, size = execute(program, [z], 2)
    assert call(ELEMENT_TYPE, 28, (16, square)).int(24) == C64
    assert floats(to_host(square)) == [-3, 4, -7, 24, 1, 0], floats(to_host(square))
    assert all(abs(a - b) < 1e-6 for a, b in zip(floats(to_host(size)), (5 ** 0.5, 5, 1)))
    every_other = from_host(client, device, struct.pack("<8f", 1, 2, 9, 9, 3, 4, 9, 9), C64, [2], strides=[16])
    assert floats(to_host(every_other)) == [1, 2, 3, 4]
    pairs = from_host(client, device, struct.pack("<6f", 1, 2, 3, 4, -1, 0), F32, [3, 2])
    try:
        execute(program, [pairs], 2)
        raise AssertionError("pairs of numbers were taken for complex ones")
    except Failed as e:
        assert e.code == INVALID_ARGUMENT and "complex" in str(e), e


def test_wrong_programs(client):
    def code_of(*args, **named):
        try:
            compile_text(client, *args, **named)
        except Failed as e:
            assert e.message
            return e.code
        raise AssertionError("it was compiled")
    assert code_of(b"module {") == INVALID_ARGUMENT
    assert code_of(b"ML\xefR and then no bytecode") == INVALID_ARGUMENT
    assert code_of(PROGRAM, form=b"hlo") == UNIMPLEMENTED
    assert code_of(PROGRAM.replace(b"stablehlo.add", b"stablehlo.frobnicate")) == UNIMPLEMENTED
    assert code_of(PROGRAM.replace(b"-> tensor<3x2xf32>", b"-> tensor<3x7xf32>")) == INVALID_ARGUMENT
    assert code_of(PROGRAM, options=b"\x1a\x02\x20\x02") == UNIMPLEMENTED  # two replicas
    for broken in (b"\x1a\xff", b"\xff" * 20, b"\x07", b"\x1a\x01\x20"):
        assert code_of(PROGRAM, options=broken) == INVALID_ARGUMENT, broken
    last = PROGRAM.rindex(b"}")
    for end in range(0, last, 7):
        assert code_of(PROGRAM[:end]) in (INVALID_ARGUMENT, UNIMPLEMENTED), end


def test_exports():
    if shutil.which("nm"):
        said = subprocess.run(["nm", "-D", "--defined-only", PLUGIN], capture_output=True, text=True, check=True).stdout
        names = {line.split()[-1] for line in said.splitlines()}
        assert names == {"GetPjrtApi"}, names


test_table()
test_no_function_breaks()
test_sizes()
test_exports()
device = test_client()
client = call(CLIENT_CREATE, 88).word(64)
test_buffers(client, device)
test_sizes_within(client, device)
results = test_programs(client, device)
test_complex(client, device)
test_wrong_programs(client)
call(CLIENT_DESTROY, 24, (16, client))  # before its buffers
assert floats(to_host(results[1])) == [10.0, 40, 20, 50, 30, 60]
for result in results:
    call(BUFFER_DESTROY, 24, (16, result))
print("the plugin answers as a client of PJRT expects")
