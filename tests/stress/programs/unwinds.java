// Exceptions of threads, stacks that overflow, signals that the virtual machine handles, collections.
import java.util.concurrent.*;
import java.util.stream.*;

class Unwinds {
  static int fails(int n) {
    if (n % 3 == 0) throw new IllegalStateException("three");
    return n;
  }

  static int deep(int n) {
    return deep(n + 1) + 1;
  }

  static long work() {
    long s = 0;
    for (int i = 0; i < 2000; i++) {
      try { s += fails(i) + new byte[1000 + i].length; } catch (IllegalStateException e) { s -= i; }
      if (i % 500 == 0) System.gc();
    }
    try { deep(0); } catch (StackOverflowError e) { s += 1; }
    try { ((Object) (s > 0 ? null : "")).hashCode(); } catch (NullPointerException e) { s += 2; }
    return s;
  }

  public static void main(String[] words) throws Exception {
    var pool = Executors.newFixedThreadPool(4);
    long t = 0;
    for (var each : pool.invokeAll(Stream.generate(() -> (Callable<Long>) Unwinds::work).limit(8).toList())) t += each.get();
    System.out.println("ended with " + t);
    System.exit(7);
  }
}
