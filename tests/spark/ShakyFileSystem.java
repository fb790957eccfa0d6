import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * A file system like an object store, for tests: shaky:///any/path. A rename is a copy and, after a while, a delete; of a
 * directory, file by file. It dies when told to: from some change on nothing can be read or written any more, as it is for a
 * process that was killed, until it is revived.
 */
public class ShakyFileSystem extends RawLocalFileSystem {
    private static int left = -1;
    private static String on = null;
    private static boolean dead = false;
    private static int changes = 0;

    public static synchronized void dieAfter(int count) { left = count; }
    public static synchronized void dieOn(String part) { on = part; }
    public static synchronized void revive() { left = -1; on = null; dead = false; }
    public static synchronized boolean isDead() { return dead; }
    public static synchronized int changes() { return changes; }

    private static synchronized void alive() throws IOException {
        if (dead) throw new IOException("the file system is dead");
    }

    private static synchronized void change(String what) throws IOException {
        alive();
        changes++;
        if (left == 0 || (on != null && what.indexOf(on) >= 0)) dead = true;
        if (left > 0) left--;
        alive();
    }

    public URI getUri() { return URI.create("shaky:///"); }
    public String getScheme() { return "shaky"; }

    public FSDataInputStream open(Path f, int bufferSize) throws IOException { alive(); return super.open(f, bufferSize); }
    public FileStatus[] listStatus(Path f) throws IOException { alive(); return super.listStatus(f); }
    public FileStatus getFileStatus(Path f) throws IOException { alive(); return super.getFileStatus(f); }
    public boolean mkdirs(Path f) throws IOException { alive(); return super.mkdirs(f); }
    public boolean delete(Path f, boolean all) throws IOException { change("delete " + f); return super.delete(f, all); }

    public FSDataOutputStream create(Path f, boolean overwrite, int size, short copies, long block, Progressable progress)
            throws IOException {
        change("create " + f);
        return new FSDataOutputStream(new Mortal(super.create(f, overwrite, size, copies, block, progress)), null);
    }

    public FSDataOutputStream create(
            Path f, FsPermission permission, boolean overwrite, int size, short copies, long block, Progressable progress)
            throws IOException {
        return create(f, overwrite, size, copies, block, progress);
    }

    public boolean rename(Path src, Path dst) throws IOException {
        change("rename " + dst);
        File from = pathToFile(src), to = pathToFile(dst);
        if (!from.exists()) return false;
        if (to.isDirectory()) to = new File(to, from.getName());
        copy(from, to);
        change("renamed " + dst);
        return super.delete(src, true);
    }

    private void copy(File from, File to) throws IOException {
        pause();
        if (from.isDirectory()) {
            to.mkdirs();
            File[] all = from.listFiles();
            for (int i = 0; i < all.length; i++) {
                change("copy " + all[i]);
                copy(all[i], new File(to, all[i].getName()));
            }
        } else {
            // An object is there when it is whole.
            File hidden = File.createTempFile("shaky", ".put", new File(System.getProperty("java.io.tmpdir")));
            Files.copy(from.toPath(), hidden.toPath(), new StandardCopyOption[] {StandardCopyOption.REPLACE_EXISTING});
            to.getParentFile().mkdirs();
            Files.move(hidden.toPath(), to.toPath(), new StandardCopyOption[] {StandardCopyOption.REPLACE_EXISTING});
        }
    }

    private static void pause() {
        try { Thread.sleep(3); } catch (InterruptedException e) { Thread.currentThread().interrupt(); }
    }

    /** Bytes on their way when the file system dies do not arrive. */
    private static class Mortal extends OutputStream {
        private final OutputStream inner;
        Mortal(OutputStream inner) { this.inner = inner; }
        public void write(int b) throws IOException { alive(); inner.write(b); }
        public void write(byte[] b, int off, int len) throws IOException { alive(); inner.write(b, off, len); }
        public void flush() throws IOException { alive(); inner.flush(); }
        public void close() throws IOException { inner.close(); alive(); }
    }
}
