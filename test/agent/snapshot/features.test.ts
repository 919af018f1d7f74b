/** The agent's features for restoring a machine. */
import { describe, expect, it } from 'vitest';
import { featuresHere } from '../../../src/agent/features.js';

describe('the feature confirm', () => {
  it('is announced only by a machine that tells one boot from another', () => {
    expect(featuresHere('4f1c')).toEqual(['verify', 'files', 'purge', 'packages', 'forward', 'copy', 'confirm']);
    expect(featuresHere(null)).toEqual(['verify', 'files', 'purge', 'packages', 'forward', 'copy']);
  });
});
