/** What a command gives back: data for programs, a view for people, names for scripts, and how it ended. */
import type { ExitStatus } from './exit-status.js';
import type { View } from './view.js';

export interface Outcome {
  /** The API's own body, printed with `-o json` and `-o yaml`; absent when there is none. */
  readonly body?: unknown;
  /** With `-o json` the body is one line, with `-o yaml` a document of its own: for answers that go on without end. */
  readonly oneLine?: true;
  /** Printed with `-o name`, one a line. */
  readonly names?: readonly string[];
  readonly view?: View;
  /** Printed with `-o dot`. */
  readonly dot?: string;
  /** 0 when absent. */
  readonly exitStatus?: ExitStatus | number;
}

/** Several outcomes are printed as they come: the pages of a long list. The last exit status counts. */
export type Outcomes = Outcome | AsyncIterable<Outcome>;
