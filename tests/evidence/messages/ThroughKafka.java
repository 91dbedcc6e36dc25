// Writes messages by Kafka's own generated classes, and reads what it wrote.
//
// Each line of the input is `class version json`, the JSON as the class's JsonConverter has it; each
// line of the output is the bytes in hex, and the JSON of what Kafka read from them.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public class ThroughKafka {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", 3);
            Class<?> converter = Class.forName(parts[0] + "JsonConverter");
            short version = Short.parseShort(parts[1]);
            Class<?> type = Class.forName(parts[0]);
            Message message = (Message) converter
                .getMethod("read", JsonNode.class, short.class)
                .invoke(null, mapper.readTree(parts[2]), version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            buffer.flip();
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            Message again = (Message) type.getDeclaredConstructor().newInstance();
            again.read(new ByteBufferAccessor(buffer), version);
            if (!again.equals(message) || buffer.hasRemaining()) {
                throw new IllegalStateException("Kafka does not read what it wrote: " + line);
            }
            JsonNode told = (JsonNode) converter
                .getMethod("write", type, short.class)
                .invoke(null, again, version);
            out.println(HexFormat.of().formatHex(bytes) + " " + mapper.writeValueAsString(told));
        }
        out.flush();
    }
}
