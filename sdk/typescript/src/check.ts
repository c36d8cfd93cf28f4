/** Checks on what a caller passes: an option that would be ignored is refused by its name. */

/** @internal */
export function checkKeys(where: string, given: object | undefined, known: readonly string[]): void {
  if (given === undefined) return;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError(`${where}: the options must be an object`);
  }
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) throw new TypeError(`${where}: unknown option '${name}'; known are ${known.join(", ")}`);
  }
}

/**
 * Returns a timeout as the protocol has it: whole milliseconds, 0 for none.
 * @internal
 */
export function milliseconds(timeout: number | undefined): number | undefined {
  if (timeout === undefined) return undefined;
  if (typeof timeout !== "number" || !(timeout >= 0)) {
    throw new TypeError(`timeoutMs must be a number of milliseconds, not ${String(timeout)}`);
  }
  return timeout === Infinity ? 0 : Math.ceil(timeout);
}
