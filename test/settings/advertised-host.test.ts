/** A name under which others are to reach the orchestrator, and which this host does not know. */
import { describe, expect, it } from 'vitest';
import { warnOfUnknownName } from '../../daemon/fleet/own-address.js';
import { type LogFields, remoteLogger } from '../../src/kernel/logger.js';
import { isUnknownName } from '../../src/settings/advertised-host.js';

const answering = (code: string) => () => Promise.reject(Object.assign(new Error(`getaddrinfo ${code}`), { code }));

describe('an advertised name', () => {
  it.each(['ENOTFOUND', 'ENODATA', 'EAI_NODATA', 'EAI_NONAME'])(
    'is unknown when the resolver says %s',
    async (code) => {
      expect(await isUnknownName('orch.example.org', answering(code))).toBe(true);
    },
  );

  it('is not called unknown while no name service answers', async () => {
    expect(await isUnknownName('orch.example.org', answering('EAI_AGAIN'))).toBe(false);
  });

  it('is not looked up when it is an address, or there is none', async () => {
    const asked: string[] = [];
    const find = async (name: string) => asked.push(name);
    for (const host of ['', '192.0.2.1', '::1', '[::1]']) expect(await isUnknownName(host, find)).toBe(false);
    expect(asked).toEqual([]);
    expect(await isUnknownName('localhost', find)).toBe(false);
    expect(asked).toEqual(['localhost']);
  });

  it('is warned of in the log', async () => {
    const entries: LogFields[] = [];
    const logger = remoteLogger((level, _, fields) => void entries.push({ level, ...fields }));
    await warnOfUnknownName('orch.example.org', logger, answering('ENOTFOUND'));
    await warnOfUnknownName('localhost', logger, async () => ({}));
    expect(entries).toMatchObject([{ level: 'warn', advertised_host: 'orch.example.org' }]);
  });
});
