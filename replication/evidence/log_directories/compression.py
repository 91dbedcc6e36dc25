"""Unpacks what producers packed: gzip, snappy, lz4 and zstd as Kafka frames them."""

import cramjam
import lz4.frame
import zstandard

from replication.evidence.digest import (
    LARGEST_UNPACKED,
    decompress_plainly,
    gunzip,
    snappy_blocks,
)


def decompress(codec: int, packed: bytes) -> bytes:
    """The bytes that `packed` stands for. `codec` is the number in the batch's attributes.

    Raises ValueError for damaged data, for an unknown codec, and for what would unpack to more than
    256 MB: no batch does, but a damaged length might say so.
    """
    if codec == 0:
        return packed
    if codec == 1:
        return gunzip(packed)
    if codec == 2:
        return b"".join(_unsnap(block) for block in snappy_blocks(packed))
    if codec == 3:
        return _unpack_lz4(packed)
    if codec == 4:
        return _unpack_zstd(packed)
    raise ValueError(f"unknown compression {codec}")


def _unsnap(block: bytes) -> bytes:
    try:
        if cramjam.snappy.decompress_raw_len(block) > LARGEST_UNPACKED:
            raise ValueError("it unpacks to more than 256 MB")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from None


def _unpack_lz4(packed: bytes) -> bytes:
    unpacker = lz4.frame.LZ4FrameDecompressor()
    try:
        unpacked = unpacker.decompress(packed, LARGEST_UNPACKED)
    except RuntimeError:
        # Brokers and clients before 0.10 wrote a wrong check sum into the frame's header
        # (KAFKA-3160); the plain decoder does not look at it.
        return decompress_plainly(3, packed)
    if not unpacker.eof:
        raise ValueError("its LZ4 frame is cut short, or unpacks to more than 256 MB")
    return bytes(unpacked)


def _unpack_zstd(packed: bytes) -> bytes:
    unpacker = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    try:
        unpacked = unpacker.read(LARGEST_UNPACKED + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if len(unpacked) > LARGEST_UNPACKED:
        raise ValueError("it unpacks to more than 256 MB")
    return unpacked
