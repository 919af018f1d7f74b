/** Warnings that Node itself prints, such as of listeners that pile up: people take them for faults of `orch`. */

/** The warning, and the calls that led to it when the program was started with `--trace-warnings`. */
const WARNING = /\(node:\d+\) (?:\[\w+\] )?\w*Warning\b.*(?:\n\s+at .*)*/;

/** Throws when the output of one of our programs holds one. */
export function refuseRuntimeWarnings(output: string): void {
  const [warning] = WARNING.exec(output) ?? [];
  if (warning !== undefined) throw new Error(`a program printed a warning of the runtime: ${warning}`);
}

/** Runs `work` in this process, and throws when that brings a warning. */
export async function withoutRuntimeWarnings<T>(work: () => Promise<T>): Promise<T> {
  const warnings: Error[] = [];
  const hear = (warning: Error) => void warnings.push(warning);
  process.on('warning', hear);
  try {
    const result = await work();
    // A warning is emitted in a tick of its own.
    await new Promise(setImmediate);
    if (warnings.length > 0)
      throw new Error(`a warning of the runtime: ${warnings[0]?.message}`, { cause: warnings[0] });
    return result;
  } finally {
    process.off('warning', hear);
  }
}
