/** What the examples share. */

import { pathToFileURL } from "node:url";

export const TASK = "How many lines of /tmp/log mention an error?";
export const LOG = "ok\nerror: disk\nok\nerror: net\n";

/** Whether a module is the program, not imported by one. */
export function isMain(url: string): boolean {
  return process.argv[1] !== undefined && url === pathToFileURL(process.argv[1]).href;
}

/** Loads a vendor's package, which the examples do not depend on. */
export async function load(name: string): Promise<any> {
  return await import(name);
}
