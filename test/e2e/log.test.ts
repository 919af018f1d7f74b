/** The log of a real orchestrator, read by a person in a terminal while an agent sends what would steer it. */
import { afterEach, describe, expect, it } from 'vitest';
import { newPerson } from '../api/world.js';
import { HELLO, TestAgent } from '../support/fleet.js';
import { Sandbox, until } from '../support/orch.js';

const HOSTILE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const NAME = 'k\u009b31m\u001b[2J\u202e\u2028\u200b\nfake';

let sandbox: Sandbox | undefined;
afterEach(() => sandbox?.dispose());

describe('a log', () => {
  it.each(['json', 'pretty'])('in the format %s escapes all that steers a terminal', async (format) => {
    sandbox = new Sandbox();
    const env = { ORCH_SERVE_BOOTSTRAP_KEY: newPerson().publicKey, ORCH_SERVE_BOOTSTRAP_USERNAME: 'root' };
    const { server, ready } = await sandbox.serve(['--log-format', format], env);
    const agent = await TestAgent.dial(Number(ready.agent_address.split(':').at(-1)));
    agent.send({ ...HELLO, attributes: { [NAME]: 'x' } });
    await agent.closed;
    await until(async () => server.output().includes('fake'), 'the violation is logged');
    const lines = server.output().split('\n').slice(0, -1);
    expect(lines.filter((line) => HOSTILE.test(line))).toEqual([]);
    const line = lines.find((one) => one.includes('fake')) ?? '';
    expect(line).toContain('an agent broke the protocol');
    expect(line).toContain('\\u009b31m\\u001b[2J\\u202e\\u2028\\u200b\\nfake');
    if (format === 'json') expect(JSON.parse(line).reason).toContain(NAME);
  });
});
