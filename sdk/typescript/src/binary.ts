/** Where the program is. */

import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join, resolve } from "node:path";
import { env, platform, arch } from "node:process";

import { BinaryNotFoundError } from "./errors.js";

const NAME = "wardian";
/** Which variables name the program; the second is the Python package's. */
const VARIABLES = ["WARDIAN_BIN", "WARDIAN_BINARY"];

/**
 * Returns the program to start: the one named, the one in `WARDIAN_BIN`, the one of this platform's package, or the
 * first in `PATH`.
 * @internal
 */
export function findBinary(named?: string): string {
  for (const chosen of [named, ...VARIABLES.map((name) => env[name])]) {
    if (chosen === undefined || chosen === "") continue;
    if (!isProgram(chosen)) throw new BinaryNotFoundError(`not an executable: ${chosen}`);
    return resolve(chosen);
  }
  const places = (env["PATH"] ?? "").split(delimiter).filter((place) => place !== "");
  for (const path of [...packaged(), ...places.map((place) => join(place, NAME))]) {
    if (isProgram(path)) return path;
  }
  throw new BinaryNotFoundError(
    `cannot find the program '${NAME}': install the package ${packageName()}, put it into PATH, or name it in ${VARIABLES[0]}`,
  );
}

/** The optional package that has the program for this platform. */
function packageName(): string {
  return `@wardian/${platform}-${arch}`;
}

function packaged(): string[] {
  try {
    return [createRequire(import.meta.url).resolve(`${packageName()}/bin/${NAME}`)];
  } catch {
    return [];
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
