/** Closes a switch over a union: a case that was forgotten does not compile. */
export function unreachable(value: never): never {
  throw new Error(`unexpected case: ${JSON.stringify(value)}`);
}
