/** Values that completion asks the orchestrator, or the disk, for. */
export type LiveValue = 'node' | 'module' | 'operator' | 'operation' | 'drift' | 'profile' | 'file';
