/** Makes new, renamed and removed names of a directory durable. */
import { open } from 'node:fs/promises';

export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
