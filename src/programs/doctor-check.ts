/** The result of one check of `orch doctor`. */
import { isFault, messageOf } from '../kernel/fault.js';

/** `note`: nothing is wrong; `warning`: works, but not as it should; `problem`: does not work. */
export const CHECK_STATES = ['ok', 'note', 'warning', 'problem'] as const;
export type CheckState = (typeof CHECK_STATES)[number];

export interface DoctorCheck {
  /** Subject of the check, such as `agent journal`. */
  readonly name: string;
  readonly state: CheckState;
  readonly found: string;
  /** A command or a sentence; null when there is nothing to do. */
  readonly fix: string | null;
}

export const ok = (name: string, found: string): DoctorCheck => ({ name, state: 'ok', found, fix: null });

export const note = (name: string, found: string, fix: string | null = null): DoctorCheck => ({
  name,
  state: 'note',
  found,
  fix,
});

export const warning = (name: string, found: string, fix: string): DoctorCheck => ({
  name,
  state: 'warning',
  found,
  fix,
});

export const problem = (name: string, found: string, fix: string | null): DoctorCheck => ({
  name,
  state: 'problem',
  found,
  fix,
});

/** Turns a thrown error into a problem with its message and hint. */
export const failure = (name: string, error: unknown, fix: string | null = null): DoctorCheck =>
  problem(name, messageOf(error), fix ?? (isFault(error) ? (error.hint ?? null) : null));

/** Runs checks of one subject. An error that they throw is a problem of that subject, and ends none of the others. */
export async function guarded(
  name: string,
  work: () => Promise<readonly DoctorCheck[]> | readonly DoctorCheck[],
): Promise<readonly DoctorCheck[]> {
  try {
    return await work();
  } catch (error) {
    return [failure(name, error)];
  }
}
