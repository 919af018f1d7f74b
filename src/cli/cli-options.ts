/** The options of a run of the command line. */
import type { Clock } from '../kernel/clock.js';
import type { Programs } from '../programs/programs.js';
import type { Env } from './env.js';
import type { Interrupts } from './interrupts.js';
import type { InputStream, OutputStream } from './render/streams.js';

export interface CliOptions {
  /** Words after the program name. */
  readonly argv: readonly string[];
  readonly env: Env;
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly programs: Programs;
  readonly clock: Clock;
  /** Source of interrupts [the signals of this process]. */
  readonly interrupts?: Interrupts;
}
