/** What a sandbox may reach outside, and your own say in each of its requests. */

import { field, list, type Json } from "./answers.js";
import { checkKeys } from "./check.js";

/** A request that the policy allows, as the sandbox sent it: without secrets and without its body. */
export interface NetworkRequest {
  readonly scheme: string;
  readonly host: string;
  readonly port: number;
  readonly method: string;
  /** The path and the query. */
  readonly path: string;
  /** Its headers, in order; a name may come twice. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Answers a request; nothing goes out. */
export interface NetworkAnswer {
  /** From 200 to 599; 200 by default. */
  readonly status?: number;
  /** At most `responseBytes` of the policy; text is sent as UTF-8. */
  readonly body?: string | Uint8Array;
  /** Those about the connection and its length are the gateway's own. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** `true` lets a request out; `false` or `{ deny: reason }` refuses it with a 403; `{ answer }` is what the sandbox gets instead. */
export type NetworkDecision = boolean | { readonly deny: string } | { readonly answer: NetworkAnswer };

/**
 * Decides about a request. Everything but a decision refuses it: an error, nothing, no answer within `responseTimeoutMs`.
 */
export type OnRequest = (request: NetworkRequest) => NetworkDecision | Promise<NetworkDecision>;

/** What a sandbox may reach outside. Everything that docs/network.md names can be given; these are the most used. */
export interface NetworkPolicy {
  /** `x.com`, `*.x.com` for the names below it, `*` for all, or an address. */
  readonly allowedHosts?: readonly string[];
  readonly blockedHosts?: readonly string[];
  /** Ports of those hosts; 80 and 443 by default. */
  readonly ports?: readonly number[];
  /** Decides about each HTTP request that the policy allows. */
  readonly onRequest?: OnRequest;
  readonly [option: string]: unknown;
}

/**
 * Returns the protocol representation of a policy.
 * @internal
 */
export function networkParams(network: NetworkPolicy | undefined): object | undefined {
  if (network?.onRequest === undefined) return network;
  if (typeof network.onRequest !== "function") throw new TypeError("network: onRequest must be a function");
  return { ...network, onRequest: true };
}

/**
 * Answers `network.request`.
 * @internal
 */
export async function answerRequest(onRequest: OnRequest, params: Json): Promise<object> {
  const headers = list(params, "headers").map((pair) => (pair as unknown[]).map(String) as [string, string]);
  const decision: unknown = await onRequest({
    scheme: field(params, "scheme", "string"),
    host: field(params, "host", "string"),
    port: field(params, "port", "number"),
    method: field(params, "method", "string"),
    path: field(params, "path", "string"),
    headers,
  });
  if (decision === true) return { action: "allow" };
  if (decision === false) return { action: "deny" };
  // What is thrown here is an error to the server, which refuses the request.
  if (typeof decision !== "object" || decision === null) throw new TypeError("onRequest returned no decision");
  checkKeys("onRequest's decision", decision, ["deny", "answer"]);
  const { deny, answer } = decision as { deny?: string; answer?: NetworkAnswer };
  if ((deny === undefined) === (answer === undefined)) throw new TypeError("onRequest returned no decision");
  if (answer === undefined) return { action: "deny", reason: deny };
  checkKeys("onRequest's answer", answer, ["status", "body", "headers"]);
  const data = Buffer.from(answer.body ?? "").toString("base64");
  return { action: "answer", status: answer.status, headers: answer.headers, data };
}
