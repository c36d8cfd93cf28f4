//! The interpreter: its limits, how it finds modules, and how a process runs in it.

use rquickjs::context::EvalOptions;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{CaughtError, Context, Ctx, Error, Function, Module, Object, Runtime, Value};

use crate::{library, native};

/// What the interpreter may use of the stack. Beyond it a script gets a RangeError. The rest of the stack is for the last
/// native call; a frame of compiled code also takes space that this does not count.
const STACK: usize = if cfg!(target_os = "wasi") { 2 << 20 } else { 1 << 20 };

/// Garbage is collected when so much was allocated since the last time.
const COLLECT: usize = 4 << 20;

/// An interpreter with the library loaded.
pub struct Engine {
    context: Context,
    // Dropped last: the context belongs to it.
    _runtime: Runtime,
}

impl Engine {
    /// Makes an interpreter and loads what every script needs.
    pub fn new() -> Result<Engine, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        runtime.set_max_stack_size(STACK);
        runtime.set_gc_threshold(COLLECT);
        runtime.set_loader(Finder, Finder);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(|ctx, promise, reason, handled| {
            // A failure here has nowhere to go: the promise stays untracked.
            let _ = tell_of_rejection(&ctx, promise, reason, handled);
        })));
        let context = Context::full(&runtime).map_err(|error| error.to_string())?;
        #[cfg(target_os = "wasi")]
        context.with(|ctx| limit_stack(&ctx))?;
        let booted = context.with(|ctx| boot(&ctx).map_err(|error| describe(&ctx, error)));
        booted?;
        Ok(Engine { context, _runtime: runtime })
    }

    /// Runs the process and returns its exit code.
    pub fn run(self) -> i32 {
        native::seed();
        let code = self.context.with(|ctx| main(&ctx).map_err(|error| describe(&ctx, error)));
        match code {
            Ok(code) => code,
            Err(message) => {
                let _ = wardian_abi::write_all(2, format!("{message}\n").as_bytes());
                7
            }
        }
    }
}

/// Sets the limit of the stack, which the engine checks on WASI too but never sets there: it is the second word after the
/// size that was set, which is found by being a number that nothing else is.
#[cfg(target_os = "wasi")]
fn limit_stack(ctx: &Ctx<'_>) -> Result<(), String> {
    use rquickjs::qjs;
    const MARK: usize = 0x005a_c3e1;
    // SAFETY: the runtime is alive and larger than what is looked at; the word that is written is the limit, since it
    // follows the size and the top of the stack, and is 0 as the engine leaves it.
    unsafe {
        let runtime = qjs::JS_GetRuntime(ctx.as_raw().as_ptr());
        qjs::JS_SetMaxStackSize(runtime, MARK as _);
        let words = runtime.cast::<usize>();
        let found = (0..256).find(|&at| *words.add(at) == MARK && *words.add(at + 2) == 0);
        let at = found.ok_or("the engine's stack limit was not found")?;
        let top = *words.add(at + 1);
        *words.add(at) = STACK;
        *words.add(at + 2) = top.saturating_sub(STACK);
    }
    Ok(())
}

fn describe(ctx: &Ctx<'_>, error: Error) -> String {
    CaughtError::from_error(ctx, error).to_string()
}

/// Loads the library: its first file gets the bridge, and defines the globals.
fn boot<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<()> {
    let bridge = native::bridge(ctx)?;
    bridge.set("evaluate", Function::new(ctx.clone(), evaluate)?)?;
    bridge.set("source", Function::new(ctx.clone(), |name: String| library::source(&name))?)?;
    bridge.set("modules", library::names().collect::<Vec<_>>())?;
    ctx.store_userdata(Bridge(rquickjs::Persistent::save(ctx, bridge.clone())))
        .map_err(|_| Error::Unknown)?;
    let source = library::source("boot").ok_or(Error::Unknown)?;
    let boot: Function = evaluate_as(ctx, source, "node:internal/boot")?;
    boot.call((bridge,))
}

fn main<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<i32> {
    let main: Function = bridge_of(ctx)?.get("main")?;
    main.call(())
}

/// The object that the library and this side share.
struct Bridge(rquickjs::Persistent<Object<'static>>);

// SAFETY: it holds nothing that lives as long as the context.
unsafe impl<'js> rquickjs::JsLifetime<'js> for Bridge {
    type Changed<'to> = Bridge;
}

fn bridge_of<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let kept = ctx.userdata::<Bridge>().ok_or(Error::Unknown)?;
    kept.0.clone().restore(ctx)
}

fn tell_of_rejection<'js>(
    ctx: &Ctx<'js>,
    promise: Value<'js>,
    reason: Value<'js>,
    handled: bool,
) -> rquickjs::Result<()> {
    let track: Function = bridge_of(ctx)?.get("rejected")?;
    track.call((promise, reason, handled))
}

fn evaluate_as<'js, V: rquickjs::FromJs<'js>>(
    ctx: &Ctx<'js>,
    source: impl Into<Vec<u8>>,
    name: &str,
) -> rquickjs::Result<V> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.replace('\0', ""));
    ctx.eval_with_options(source, options)
}

/// Evaluates a script in the global scope, under a name for stack traces.
fn evaluate<'js>(ctx: Ctx<'js>, source: String, name: String) -> rquickjs::Result<Value<'js>> {
    evaluate_as(&ctx, source, &name)
}

/// Finds and loads modules by asking the library.
struct Finder;

impl Resolver for Finder {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        let resolve: Function = bridge_of(ctx)?.get("resolve")?;
        resolve.call((name, base))
    }
}

impl Loader for Finder {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let bridge = bridge_of(ctx)?;
        let load: Function = bridge.get("load")?;
        let kind = attributes.map(|with| with.get_type()).transpose()?.flatten();
        let source: String = load.call((name, kind))?;
        let module = Module::declare(ctx.clone(), name, source)?;
        let describe: Function = bridge.get("describeModule")?;
        describe.call::<_, ()>((module.meta()?, name))?;
        Ok(module)
    }
}
