// An acknowledgement log beside a Java producer: JSON Lines that `replication-analyzer diagnose` reads.
// Java 8 and kafka-clients alone. A thread writes whole lines five times a second; nothing here ever
// blocks or fails the producer.
package replication.tap;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.SerializationException;

/**
 * The log of one producer. With `callback` it names records by their keys; `note` takes any name.
 * Lines that cannot be written are dropped, counted and said once on stderr.
 */
public final class AcknowledgementLog implements AutoCloseable {
    private static final long FLUSH_MILLISECONDS = 200;
    private static final int MOST_WAITING = 64 << 20;

    private final File folder;
    private final String stem;
    private final long fileBytes;
    private final int keepFiles;
    private final long below;
    private final byte[] begin;
    private final byte[] acknowledged;
    private final Map<String, byte[]> topics = new HashMap<>();
    private final Deque<File> files = new ArrayDeque<>();
    private final Object writing = new Object();
    private final Thread flusher;
    private final Thread atExit;
    private Lines lines = new Lines();
    private Lines spare = new Lines();
    private FileOutputStream out;
    private long size;
    private int number;
    private volatile boolean closed;
    private long dropped;

    /**
     * folder: where its files are, made where missing. client: its name in the log. acks: that of the
     * producer's settings. foundIn: where in each record its name is ("key", "value",
     * "header:NAME"), null where records have none. sample: the share of the keys that are noted, above
     * 0, at most 1. fileBytes: a file of that size is followed by a new one. keepFiles: so many of its
     * own files are kept, 0: all.
     */
    public AcknowledgementLog(
            File folder, String client, String acks, String foundIn, double sample, long fileBytes, int keepFiles)
            throws IOException {
        String asked = acks.equals("-1") ? "all" : acks;
        if (!Arrays.asList("0", "1", "all").contains(asked)) {
            throw new IllegalArgumentException("acks " + acks + ": expected 0, 1 or all");
        }
        if (!(sample > 0 && sample <= 1)) {
            throw new IllegalArgumentException("sample " + sample + ": expected a share above 0, at most 1");
        }
        this.folder = folder;
        this.fileBytes = fileBytes;
        this.keepFiles = keepFiles;
        this.below = sample == 1 ? Long.MAX_VALUE : (long) (sample * (1L << 32));
        String where = foundIn == null ? "" : ",\"payload_id_in\":" + quoted(foundIn);
        this.begin = ascii("{\"client\":" + quoted(client) + ",\"acks\":\"" + asked + "\"" + where + ",\"topic\":");
        this.acknowledged = ascii(",\"status\":\"" + (asked.equals("0") ? "sent" : "acked") + "\"}\n");
        this.stem = "acks-" + client.replaceAll("[^\\w.-]", "_") + "-" + System.currentTimeMillis();
        if (!folder.isDirectory() && !folder.mkdirs()) {
            throw new IOException("cannot make the folder " + folder);
        }
        open();
        flusher = new Thread(this::run, "acknowledgement-log");
        flusher.setDaemon(true);
        flusher.start();
        atExit = new Thread(this::close, "acknowledgement-log-end");
        Runtime.getRuntime().addShutdownHook(atExit);
    }

    /** A callback for `send` that notes the answer under the record's key, then calls yours (or null). */
    public Callback callback(ProducerRecord<?, ?> record, Callback then) {
        byte[] key = bytes(record.key());
        boolean noted = isSampled(key == null ? bytes(record.value()) : key);
        return (metadata, error) -> {
            if (noted && metadata != null) {
                note(metadata.topic(), metadata.partition(), metadata.offset(), text(key), error);
            }
            if (then != null) {
                then.onCompletion(metadata, error);
            }
        };
    }

    /** Whether records of this key are noted: by its CRC-32, as the Python helper does. */
    public boolean isSampled(byte[] key) {
        if (below == Long.MAX_VALUE) {
            return true;
        }
        CRC32 hash = new CRC32();
        hash.update(key == null ? new byte[0] : key);
        return hash.getValue() < below;
    }

    /** One answer. payloadId: names the record, or null; error: null where it was acknowledged. */
    public void note(String topic, int partition, long offset, String payloadId, Exception error) {
        if (partition < 0) {
            return; // It never left the client.
        }
        long now = System.currentTimeMillis();
        synchronized (this) {
            if (lines.length > MOST_WAITING) {
                drop(1, "the disk does not keep up");
                return;
            }
            byte[] start = topics.get(topic);
            if (start == null) {
                start = ascii(new String(begin, StandardCharsets.US_ASCII) + quoted(topic) + ",\"partition\":");
                topics.put(topic, start);
            }
            lines.add(start).add(partition).add(OFFSET);
            if (offset < 0 || error != null) {
                lines.add(NULL);
            } else {
                lines.add(offset);
            }
            lines.add(TIME).add(now);
            if (payloadId != null) {
                lines.add(NAME).addQuoted(payloadId);
            }
            lines.add(error == null ? acknowledged : told(error));
            lines.count++;
        }
    }

    /** How many lines were not written. */
    public synchronized long dropped() {
        return dropped;
    }

    /** Writes what was noted so far. */
    public void flush() {
        synchronized (writing) {
            Lines full;
            synchronized (this) {
                full = lines;
                lines = spare;
            }
            write(full);
            full.clear();
            spare = full;
        }
    }

    @Override
    public void close() {
        synchronized (writing) {
            if (closed) {
                return;
            }
            closed = true;
            flush();
            closeFile();
        }
        try {
            Runtime.getRuntime().removeShutdownHook(atExit);
        } catch (IllegalStateException ending) {
            // The machine is ending already.
        }
    }

    private void run() {
        while (!closed) {
            try {
                Thread.sleep(FLUSH_MILLISECONDS);
            } catch (InterruptedException asked) {
                return;
            }
            synchronized (writing) {
                if (!closed) {
                    flush();
                }
            }
        }
    }

    private void write(Lines full) {
        if (full.length == 0) {
            return;
        }
        try {
            if (out == null) {
                open();
            }
            out.write(full.bytes, 0, full.length);
            size += full.length;
            if (size >= fileBytes) {
                closeFile();
            }
        } catch (IOException error) {
            closeFile(); // A torn line stays: the next one begins in a new file.
            drop(full.count, error.getMessage());
        }
    }

    private void open() throws IOException {
        File file;
        do {
            file = new File(folder, stem + "-" + number++ + ".jsonl");
        } while (!file.createNewFile());
        out = new FileOutputStream(file, true);
        size = 0;
        files.add(file);
        while (keepFiles > 0 && files.size() > keepFiles) {
            files.remove().delete();
        }
    }

    private void closeFile() {
        if (out != null) {
            try {
                out.close();
            } catch (IOException ignored) {
                // Nothing more can be done for this file.
            }
            out = null;
        }
    }

    private synchronized void drop(long count, String why) {
        if (dropped == 0) {
            System.err.println("acknowledgement log: lines are dropped, " + folder + " takes no more (" + why
                    + "). The producer goes on; what is missing in the log is judged without it");
        }
        dropped += count;
    }

    /** "failed" where the record was never appended, whatever was tried before; else it is open. */
    private static byte[] told(Exception error) {
        boolean refused = error instanceof SerializationException
                || error instanceof RecordTooLargeException
                || error instanceof InvalidTopicException
                || error instanceof AuthorizationException;
        return ascii(",\"status\":\"" + (refused ? "failed" : "unknown") + "\",\"error\":"
                + quoted(error.getClass().getSimpleName()) + "}\n");
    }

    /** A key or value before it is serialized, as bytes: text as UTF-8. */
    static byte[] bytes(Object content) {
        if (content == null || content instanceof byte[]) {
            return (byte[]) content;
        }
        return content.toString().getBytes(StandardCharsets.UTF_8);
    }

    /** As `diagnose` finds it again in a record: UTF-8, else hexadecimal; null for nothing. */
    static String text(byte[] content) {
        if (content == null || content.length == 0) {
            return null;
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(content)).toString();
        } catch (CharacterCodingException error) {
            StringBuilder hex = new StringBuilder();
            for (byte one : content) {
                hex.append(String.format("%02x", one));
            }
            return hex.toString();
        }
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static String quoted(String text) {
        Lines made = new Lines();
        made.addQuoted(text);
        return new String(made.bytes, 0, made.length, StandardCharsets.US_ASCII);
    }

    private static final byte[] OFFSET = ascii(",\"offset\":");
    private static final byte[] TIME = ascii(",\"ts\":");
    private static final byte[] NAME = ascii(",\"payload_id\":");
    private static final byte[] NULL = ascii("null");

    /** Lines as bytes, in one piece that is used again. */
    private static final class Lines {
        private static final char[] HEX = "0123456789abcdef".toCharArray();
        byte[] bytes = new byte[1 << 16];
        int length;
        int count;

        void clear() {
            length = 0;
            count = 0;
        }

        Lines add(byte[] more) {
            room(more.length);
            System.arraycopy(more, 0, bytes, length, more.length);
            length += more.length;
            return this;
        }

        Lines add(long value) {
            room(20);
            int start = length;
            long rest = value;
            do {
                bytes[length++] = (byte) ('0' + rest % 10);
                rest /= 10;
            } while (rest > 0);
            for (int low = start, high = length - 1; low < high; low++, high--) {
                byte kept = bytes[low];
                bytes[low] = bytes[high];
                bytes[high] = kept;
            }
            return this;
        }

        Lines addQuoted(String text) {
            room(6 * text.length() + 2);
            bytes[length++] = '"';
            for (int at = 0; at < text.length(); at++) {
                char one = text.charAt(at);
                if (one >= ' ' && one < 127 && one != '"' && one != '\\') {
                    bytes[length++] = (byte) one;
                } else {
                    bytes[length++] = '\\';
                    bytes[length++] = 'u';
                    for (int shift = 12; shift >= 0; shift -= 4) {
                        bytes[length++] = (byte) HEX[one >> shift & 15];
                    }
                }
            }
            bytes[length++] = '"';
            return this;
        }

        private void room(int more) {
            if (length + more > bytes.length) {
                bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, length + more));
            }
        }
    }
}
