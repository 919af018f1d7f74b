/** Discovery between booted machines: by broadcast, by the group of IPv6, to one machine, and against forgeries. */
import { sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { AuditEvent } from '../../src/contract/audit.js';
import type { Discovered } from '../../src/contract/discovery.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { encodePacket, signedBytes } from '../../src/wire/discovery-packet.js';
import { newIdentity } from '../support/identity.js';
import { until } from '../support/orch.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import type { Program } from './program.js';
import { describeHosts } from './requirements.js';

const unit = (name: string) => readFileSync(fileURLToPath(new URL(`units/${name}.service`, import.meta.url)), 'utf8');

const SENDER = `
  const socket = require('node:dgram').createSocket('udp4');
  socket.bind(() => {
    socket.setBroadcast(true);
    socket.send(Buffer.from(process.argv[1], 'base64'), 4747, process.argv[2], () => socket.close());
  });
`;

describeHosts('discovery between booted machines', () => {
  let fleet: Fleet;
  let control: BootedHost;
  let web: BootedHost;
  let other: BootedHost;
  let key: PublicKeyHex;

  const orch = (...args: readonly string[]) => control.run(['orch', ...args], { timeoutMs: 60_000 });
  const json = async <T>(...args: readonly string[]): Promise<T> => {
    const { status, stdout, stderr } = await orch(...args, '-o', 'json');
    if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}:\n${stderr}${stdout}`);
    return JSON.parse(stdout) as T;
  };
  const agents = () => json<Agent[]>('agents', 'list');
  const agentLog = async () => (await web.run(['journalctl', '-u', 'orch-agent', '-o', 'cat'])).stdout;
  /** Sends again until it helped: the agent may not listen yet. */
  const discoverUntil = async (count: number, ...args: readonly string[]): Promise<void> => {
    await until(async () => {
      await orch('discover', ...args);
      return (await agents()).length === count;
    }, `${count} agents are there`);
  };

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['orch', 'web-01', 'web-02'] });
    control = fleet.host('orch');
    web = fleet.host('web-01');
    other = fleet.host('web-02');
    expect(await orch('operator', 'init')).toMatchObject({ status: 0 });
    await control.writeFile('/etc/orch/orchestrator.yaml', 'agent_host: "::"\n');
    await control.writeFile('/etc/systemd/system/orch-serve.service', unit('orch-serve'));
    expect(await control.run(['systemctl', 'enable', '--now', 'orch-serve'])).toMatchObject({ status: 0 });
    await until(async () => (await orch('status')).stderr.includes('--tls-fingerprint'), 'the API answers');
    const fingerprint = /--tls-fingerprint ([0-9a-f:]{64,})/.exec((await orch('status')).stderr)?.[1] as string;
    const url = ['--url', 'https://127.0.0.1:4748', '--tls-fingerprint', fingerprint];
    expect(await orch('profile', 'create', 'here', ...url)).toMatchObject({ status: 0 });
    ({ public_key: key } = await json<{ public_key: PublicKeyHex }>('status'));
    await web.writeFile('/etc/orch/agent.env', `ORCH_AGENT_ORCHESTRATOR_KEY=${key}\n`, '0600');
    await web.writeFile('/etc/systemd/system/orch-agent.service', unit('orch-agent-discovery'));
    expect(await web.run(['systemctl', 'enable', '--now', 'orch-agent'])).toMatchObject({ status: 0 });
    await until(async () => (await agentLog()).includes('waiting for discovery packets'), 'the agent waits');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  it('is not brought about by packets of anybody else', async () => {
    const stranger = newIdentity();
    const place = { host: control.address, port: 4747, timestamp: Date.now() };
    const forge = (publicKey: PublicKeyHex) => {
      const announcement = { ...place, publicKey };
      const signature = sign(null, signedBytes(announcement), stranger.privateKey).toString('hex');
      return encodePacket({ ...announcement, signature }).toString('base64');
    };
    for (const packet of [forge(stranger.publicKey), forge(key), Buffer.from('hello').toString('base64')]) {
      const broadcast = other.address.replace(/\d+$/, '255');
      expect(await other.run(['node', '-e', SENDER, packet, broadcast])).toMatchObject({ status: 0 });
    }
    await until(async () => (await agentLog()).includes('was not followed'), 'the forgeries were heard');
    expect(await agents()).toEqual([]);
  });

  it('brings an agent that knows the key by broadcast, and no other', async () => {
    const ignorant = await other.spawn(['orch', 'agent']);
    await ignorant.said(/waiting for discovery packets/);
    await ignorant.said(/no key of an orchestrator is known here/);
    const sent = await json<Discovered>('discover');
    expect(sent.targets).toEqual(
      expect.arrayContaining([`${control.address.replace(/\d+$/, '255')}:4747`, '[ff02::1%eth0]:4747']),
    );
    await ignorant.said(/a discovery packet was not followed/);
    await until(async () => (await agents()).length === 1, 'the agent has come');
    const [agent] = await agents();
    expect(agent).toMatchObject({ status: 'pending', initial_hostname: 'web-01', initial_ip: web.address });
    const approve = ['agents', 'approve', agent?.node_id ?? '', '--name', 'web-01', '--yes'];
    expect(await orch(...approve)).toMatchObject({ status: 0 });
    await until(async () => (await agents())[0]?.connected === true, 'the agent is connected');
    expect((await other.run(['ls', '/var/lib/orch-agent'])).stdout).not.toContain('orchestrator.pub');
    ignorant.kill();
    await ignorant.ended;
    const { events } = await json<{ events: AuditEvent[] }>('audit', '--type', 'orchestrator.discovery_sent');
    expect(events[0]).toMatchObject({ metadata: { targets: sent.targets } });
  });

  it('brings one agent by its address', async () => {
    const agent = await wait(other, 'unicast');
    await discoverUntil(2, '--target', 'web-02:4747');
    await end(agent);
  });

  it('brings an agent by the group of IPv6, through the interface that the packet came by', async () => {
    expect(await other.run(['ip', '-4', 'addr', 'flush', 'dev', 'eth0'])).toMatchObject({ status: 0 });
    const agent = await wait(other, 'group');
    await discoverUntil(3);
    const found = (await agents()).find(({ initial_ip }) => initial_ip.startsWith('fe80:'));
    expect(found).toMatchObject({ initial_hostname: 'web-02', status: 'pending' });
    await end(agent);
  });

  it('leads an agent that was restarted back without another packet', async () => {
    expect(await web.run(['systemctl', 'restart', 'orch-agent'])).toMatchObject({ status: 0 });
    await until(async () => {
      const status = JSON.parse((await web.run(['orch', 'agent', 'status', '-o', 'json'])).stdout);
      return status.link === 'connected' && status.orchestrator === `${control.address}:4747`;
    }, 'it is connected again');
  });

  /** An agent with a directory of its own, which knows the key. */
  async function wait(host: BootedHost, name: string): Promise<Program> {
    const agent = await host.spawn(['orch', 'agent', '--orchestrator-key', key, '--data-dir', `/var/lib/${name}`]);
    await agent.said(/waiting for discovery packets/);
    return agent;
  }

  async function end(agent: Program): Promise<void> {
    agent.kill();
    await agent.ended;
  }
});
