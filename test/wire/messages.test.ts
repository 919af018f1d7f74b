/**
 * The messages of the agent link as they were released. A change needs a new version or revision in `src/wire/version.ts`,
 * because the other end of a link may be of another release; `UPDATE_GOLDENS=1` writes the file then.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { AgentMessageSchemas, OrchestratorMessageSchemas } from '../../src/wire/messages.js';
import { PROTOCOL_REVISION } from '../../src/wire/version.js';

const file = fileURLToPath(new URL('messages.json', import.meta.url));

/** Descriptions are for readers: they change no message. */
const withoutDescriptions = (key: string, value: unknown) =>
  key === 'description' && typeof value === 'string' ? undefined : value;

const now = JSON.parse(
  JSON.stringify({
    version: PROTOCOL_VERSION,
    revision: PROTOCOL_REVISION,
    agent: AgentMessageSchemas,
    orchestrator: OrchestratorMessageSchemas,
  }),
  withoutDescriptions,
);

it('have a new version or revision when they change', () => {
  const released = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8'), withoutDescriptions) : null;
  const isRaised =
    released === null ||
    now.version > released.version ||
    (now.version === released.version && now.revision > released.revision);
  if (isRaised && process.env.UPDATE_GOLDENS === '1') writeFileSync(file, `${JSON.stringify(now, null, 1)}\n`);
  else expect(now, 'the messages of src/wire/messages.ts have changed: raise PROTOCOL_REVISION').toEqual(released);
});
