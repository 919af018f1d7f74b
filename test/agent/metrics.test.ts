/** The agent's measurements of this machine. */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Metrics, usageBetween } from '../../src/agent/metrics.js';
import { MetricsSampleSchema } from '../../src/kernel/schema.js';
import { validator } from '../../src/kernel/validator.js';
import { clock } from '../support/agent.js';

const busy = (milliseconds: number) => {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
};

describe('a measurement', () => {
  it('tells what the machine tells', async () => {
    const metrics = new Metrics({ clock, settings: () => ({ enabled: true, interval: 3600 }) });
    onTestFinished(() => metrics.stop());
    const sample = await metrics.sample();
    if (sample === null) throw new Error('there is a sample');
    expect(validator(MetricsSampleSchema).problems(sample)).toEqual([]);
    expect(sample.cpu_usage).toBeNull();
    expect(sample.memory_total).toBe(totalmem());
    expect(sample.memory_used).toBeGreaterThan(0);
    expect(sample.memory_used).toBeLessThan(totalmem());
    expect(sample.disk_used).toBeLessThanOrEqual(sample.disk_total ?? 0);
    if (process.platform === 'linux') {
      const uptime = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
      expect(Math.abs((sample.uptime ?? 0) - uptime)).toBeLessThan(5);
    }
  });

  it('is taken again every while, with the use of the processors in between', async () => {
    const metrics = new Metrics({ clock, settings: () => ({ enabled: true, interval: 0.02 }) });
    onTestFinished(() => metrics.stop());
    metrics.start();
    for (let round = 0; round < 200; round += 1) {
      busy(10);
      await new Promise((resolve) => setTimeout(resolve, 10));
      const usage = (await metrics.sample())?.cpu_usage;
      if (usage !== null && usage !== undefined && usage > 0) return;
    }
    throw new Error('the processors are said to be idle all the time');
  });

  it('is not taken where it is turned off, and is as soon as it is turned on', async () => {
    let enabled = false;
    const metrics = new Metrics({ clock, settings: () => ({ enabled, interval: 3600 }) });
    onTestFinished(() => metrics.stop());
    metrics.start();
    expect(await metrics.sample()).toBeNull();
    enabled = true;
    expect(await metrics.sample()).not.toBeNull();
  });
});

it('the use of processors is a share of the time that went by', () => {
  const at = (used: number, total: number) => ({ busy: used, total });
  expect(usageBetween(at(100, 1000), at(150, 1200))).toBe(25);
  expect(usageBetween(at(100, 1000), at(100, 1000))).toBeNull();
  expect(usageBetween(at(100, 1000), at(90, 1100))).toBe(0);
  expect(usageBetween(at(0, 0), at(1, 3))).toBe(33.33);
});
