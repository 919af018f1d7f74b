export function outputFrom(offset: number, length: number): Buffer;
