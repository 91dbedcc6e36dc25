// The acknowledgement log as a producer's interceptor: no line of the application changes.
//
//   interceptor.classes=replication.tap.AcknowledgementInterceptor
//   acknowledgement.log.dir=/var/log/orders/acks
//   acknowledgement.log.header=ack-id          (kafka-clients 4.1 or later)
package replication.tap;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Settings, beside the producer's own: acknowledgement.log.dir; acknowledgement.log.header, the header
 * that names each record (one that is there is taken, else the interceptor adds it), without which
 * records are noted by their offsets alone; acknowledgement.log.sample, .file.bytes, .keep.files as in
 * AcknowledgementLog. Before kafka-clients 4.1 an interceptor is not told whose answer it is given: a
 * header and a sample are refused there, and AcknowledgementLog.callback has both.
 */
public final class AcknowledgementInterceptor implements ProducerInterceptor<Object, Object> {
    private static final String PREFIX = "acknowledgement.log.";
    private final String run = UUID.randomUUID().toString().substring(0, 8);
    private final AtomicLong numbers = new AtomicLong();
    private AcknowledgementLog log;
    private String header;

    @Override
    public void configure(Map<String, ?> configs) {
        header = setting(configs, "header", null);
        double sample = Double.parseDouble(setting(configs, "sample", "1"));
        if (!isToldHeaders() && (header != null || sample < 1)) {
            throw new ConfigException("kafka-clients " + AppInfoParser.getVersion() + " does not tell an "
                    + "interceptor whose answer it is given: leave out " + PREFIX + "header and " + PREFIX
                    + "sample, or call AcknowledgementLog.callback where you send");
        }
        if (header == null && sample < 1) {
            throw new ConfigException(PREFIX + "sample needs " + PREFIX + "header, which marks whose it is");
        }
        String folder = setting(configs, "dir", null);
        if (folder == null) {
            throw new ConfigException(PREFIX + "dir is missing: the folder of the acknowledgement log");
        }
        Object client = configs.get("client.id");
        try {
            log = new AcknowledgementLog(
                    new File(folder),
                    client == null || client.toString().isEmpty() ? "producer-" + run : client.toString(),
                    acks(configs),
                    header == null ? null : "header:" + header,
                    sample,
                    Long.parseLong(setting(configs, "file.bytes", String.valueOf(64L << 20))),
                    Integer.parseInt(setting(configs, "keep.files", "0")));
        } catch (IOException | IllegalArgumentException error) {
            throw new ConfigException(PREFIX + "*: " + error.getMessage());
        }
    }

    @Override
    public ProducerRecord<Object, Object> onSend(ProducerRecord<Object, Object> record) {
        if (header == null || record.headers().lastHeader(header) != null) {
            return record;
        }
        byte[] key = AcknowledgementLog.bytes(record.key());
        if (!log.isSampled(key == null ? AcknowledgementLog.bytes(record.value()) : key)) {
            return record;
        }
        byte[] name = (run + "-" + numbers.getAndIncrement()).getBytes(StandardCharsets.US_ASCII);
        ProducerRecord<Object, Object> named = record;
        try {
            record.headers().add(header, name);
        } catch (IllegalStateException sentBefore) {
            named = new ProducerRecord<>(record.topic(), record.partition(), record.timestamp(), record.key(),
                    record.value(), record.headers());
            named.headers().add(header, name);
        }
        return named;
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception error) {
        if (metadata != null) {
            log.note(metadata.topic(), metadata.partition(), metadata.offset(), null, error);
        }
    }

    /** From kafka-clients 4.1 on this is called in place of the other. */
    public void onAcknowledgement(RecordMetadata metadata, Exception error, Headers headers) {
        if (header == null) {
            onAcknowledgement(metadata, error);
            return;
        }
        Header name = headers == null ? null : headers.lastHeader(header);
        if (name != null && metadata != null) {
            String told = AcknowledgementLog.text(name.value());
            log.note(metadata.topic(), metadata.partition(), metadata.offset(), told, error);
        }
    }

    @Override
    public void close() {
        if (log != null) {
            log.close();
        }
    }

    private static String setting(Map<String, ?> configs, String name, String otherwise) {
        Object found = configs.get(PREFIX + name);
        return found == null ? otherwise : found.toString();
    }

    private static boolean isToldHeaders() {
        for (Method method : ProducerInterceptor.class.getMethods()) {
            if (method.getName().equals("onAcknowledgement") && method.getParameterTypes().length == 3) {
                return true;
            }
        }
        return false;
    }

    /** What the producer asks for: its setting, or the default of its release ("all" from 3.0 on). */
    private static String acks(Map<String, ?> configs) {
        Object acks = configs.get("acks");
        if (acks != null) {
            return acks.toString();
        }
        boolean idempotent = "true".equals(String.valueOf(configs.get("enable.idempotence")));
        String release = AppInfoParser.getVersion();
        boolean isOld = release.startsWith("0.") || release.startsWith("1.") || release.startsWith("2.");
        return isOld && !idempotent ? "1" : "all";
    }
}
