# The interpreter of a session. Runs in the same namespace as prepare.py, once, when the image is made.
#
# A question is the number of bytes that the answer may have, a NUL, and code; a plus before the number says that this is a
# copy of another sandbox's interpreter, in its first call. The answer is JSON:
#   value      what the last expression is, if it is one and not None: {"repr", "html", "png", "json"}
#   displays   what was given to display(), each like that
#   error      what was raised: {"type", "message", "traceback"}
#   exit       the code that exit() was given
#   truncated  true if something was too long
base64, json, linecache, traceback = map(modules.get, ("base64", "json", "linecache", "traceback"))
dumps = json.encoder.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

OWN = "<frozen wardian>"
FUTURE = 0
for feature in modules["__future__"].all_feature_names:
    FUTURE |= getattr(modules["__future__"], feature).compiler_flag


class State:
    cells = 0
    flags = 0
    left = 0
    truncated = False
    displays = []


def begin():
    builtins.display = display
    sys.path.insert(0, "")
    # As at a prompt: whoever listens hears each line when it is written, in order with those of the other stream.
    sys.stdout.reconfigure(line_buffering=True)


def display(*objects):
    """Shows objects as a notebook does: in the result of the call."""
    for each in objects:
        State.displays.append(describe(each))


def describe(value):
    shown = {"repr": fit(repr(value))}
    for name in ("html", "png", "json"):
        method = getattr(type(value), f"_repr_{name}_", None)
        if method is None:
            continue
        try:
            made = method(value)
            if isinstance(made, tuple):
                made = made[0]
            if made is None:
                continue
            if name == "png" and isinstance(made, (bytes, bytearray)):
                made = base64.b64encode(made).decode()
            size = len(json.dumps(made))
        except Exception:
            continue
        if size > State.left:
            State.truncated = True
            continue
        State.left -= size
        shown[name] = made
    return shown


def fit(text):
    # A character takes up to twelve bytes in the answer: \ud83d\ude00.
    most = max(State.left, 0) // 12
    if len(text) * 12 > State.left and len(json.dumps(text)) > State.left:
        State.truncated = True
        text = text[:most] + "…"
    State.left -= len(json.dumps(text))
    return text


def run(source, result):
    State.cells += 1
    name = f"<cell {State.cells}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = sys.modules["__main__"].__dict__
    body, last = compile_cell(source, name, State.flags)
    State.flags |= body.co_flags & FUTURE
    exec(body, space)
    if last is not None:
        value = eval(last, space)
        if value is not None:
            builtins._ = value
            result["value"] = describe(value)


def explain(error):
    # Without the frames that called the code.
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == OWN:
        frames = frames.tb_next
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except Exception:
        message = "<exception str() failed>"
    try:
        lines = "".join(traceback.TracebackException(kind, error, frames, compact=True).format()).splitlines()
    except Exception:
        lines = [f"{name}: {message}"]
    return {"type": fit(name), "message": fit(message), "traceback": fit("\n".join(lines)).split("\n")}


def exit_code(error):
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        # What fits no C long is -1 there.
        return code & 0xFF if -(2**63) <= code < 2**63 else 0xFF
    print(code, file=sys.stderr)
    return 1


def flush():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass


def plain(value):
    # JSON has no halves of characters, and no numbers that are none.
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {plain(str(key)): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def written(result):
    try:
        return dumps(result).encode()
    except ValueError:
        return json.dumps(plain(result), ensure_ascii=False).encode()


def part():
    # A copy has the heap of the other: what nobody seeded must not go on with the same numbers in both.
    for generator in list(modules["random"]._unseeded):
        generator.seed()
    if "numpy" in FRESHEN:
        return
    rand = modules["numpy.random.mtrand"]._rand
    for generator in list(modules["numpy.random.bit_generator"]._unseeded):
        try:
            if generator is rand._bit_generator and type(generator).__name__ == "MT19937":
                # Keeps half of what it drew for normal deviates, too.
                rand.seed()
            else:
                generator._seed_anew()
        except Exception:
            # A class of the user's own that cannot be made without arguments.
            pass


def answer(question):
    most, _, source = question.partition(b"\0")
    State.left = int(most)
    State.truncated = False
    State.displays = []
    result = {}
    try:
        try:
            if most.startswith(b"+"):
                part()
            run(source.decode(), result)
        except SystemExit as error:
            result["exit"] = exit_code(error)
        except BaseException as error:
            result["error"] = explain(error)
        flush()
    except BaseException as error:
        # No memory for the explanation, or a signal in the middle of it.
        result["error"] = {"type": type(error).__name__, "message": "", "traceback": []}
    if State.displays:
        result["displays"] = State.displays
    if State.truncated:
        result["truncated"] = True
    State.displays = []
    return written(result)


# What need not be taken apart when a process ends.
image = set(sys.modules.values()) | set(modules.values())
image.discard(sys.modules["__main__"])

# Everything of the image is as good as for ever: nobody looks for garbage among it.
gc.collect()
gc.freeze()
