/** Examples of all operations, by the name of the operation. */
import { examples as agents } from './examples/agents.js';
import { examples as assignments } from './examples/assignments.js';
import { examples as audit } from './examples/audit.js';
import { examples as auth } from './examples/auth.js';
import { examples as channels } from './examples/channels.js';
import { examples as discovery } from './examples/discovery.js';
import { examples as drift } from './examples/drift.js';
import { examples as enrolmentTokens } from './examples/enrolment-tokens.js';
import { examples as forward } from './examples/forward.js';
import { examples as maintenance } from './examples/maintenance.js';
import { examples as metrics } from './examples/metrics.js';
import { examples as modules } from './examples/modules.js';
import { examples as notifications } from './examples/notifications.js';
import { examples as operators } from './examples/operators.js';
import { examples as rollouts } from './examples/rollouts.js';
import { examples as runs } from './examples/runs.js';
import { examples as secrets } from './examples/secrets.js';
import { examples as state } from './examples/state.js';
import { examples as status } from './examples/status.js';
import { examples as tags } from './examples/tags.js';
import { examples as terminal } from './examples/terminal.js';
import { examples as values } from './examples/values.js';
import type { Example } from './route.js';

export const EXAMPLES: Readonly<Record<string, Example>> = {
  ...agents,
  ...assignments,
  ...audit,
  ...auth,
  ...channels,
  ...discovery,
  ...drift,
  ...enrolmentTokens,
  ...forward,
  ...maintenance,
  ...metrics,
  ...modules,
  ...notifications,
  ...operators,
  ...rollouts,
  ...runs,
  ...secrets,
  ...state,
  ...status,
  ...tags,
  ...terminal,
  ...values,
};
