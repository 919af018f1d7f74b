/** Counts unpacked bytes, and refuses what is too large for the archive that it comes from. */
import { MAX_UNPACKED_BYTES, mostUnpacked } from '../../../resources/archive/unpacked.js';
import { refused } from './archive-tree.js';

export class UnpackedMeter {
  private readonly most: number;
  private count = 0;

  /** @param archiveSize bytes of the archive */
  constructor(archiveSize: number) {
    this.most = mostUnpacked(archiveSize);
  }

  /** Throws `archive_refused` beyond the maximum. */
  add(bytes: number): void {
    this.count += bytes;
    if (this.count <= this.most) return;
    const isRatio = this.most < MAX_UNPACKED_BYTES;
    throw refused(`it unpacks to more than ${this.most} bytes${isRatio ? ', far more than its own size' : ''}`);
  }
}
