/** Tells whether there is a file. */
import { stat } from 'node:fs/promises';
import { systemCodeOf } from '../../../src/kernel/fault.js';

export async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
