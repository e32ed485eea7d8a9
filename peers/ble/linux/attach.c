/* attach TTY: makes a serial line Linux's Bluetooth controller, by H4, and holds it.
 *
 * Prints one line once the controller is up, and stays, since the line discipline goes with the
 * process. The numbers are of Linux's own headers, which name them only inside the kernel or in
 * BlueZ: include/net/bluetooth/hci_sock.h and drivers/bluetooth/hci_uart.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#define HCI_LINE_DISCIPLINE 15
#define HCI_UART_SET_PROTOCOL _IOW('U', 200, int)
#define HCI_UART_H4 0
#define HCI_PROTOCOL 1
#define HCI_DEVICE_UP _IOW('H', 201, int)
#define FIRST_DEVICE 0
#define MOST_TRIES 20

static int fail(const char *step)
{
	printf("attach: %s: %s\n", step, strerror(errno));
	return 1;
}

int main(int count, char **words)
{
	int discipline = HCI_LINE_DISCIPLINE;
	struct termios line;
	int tty, hci, tries;

	if (count != 2) {
		printf("attach: name a serial line\n");
		return 2;
	}
	tty = open(words[1], O_RDWR | O_NOCTTY);
	if (tty < 0 || tcgetattr(tty, &line) != 0)
		return fail(words[1]);
	cfmakeraw(&line);
	line.c_cflag |= CLOCAL | CREAD;
	line.c_cflag &= ~CRTSCTS;
	cfsetspeed(&line, B115200);
	if (tcsetattr(tty, TCSANOW, &line) != 0)
		return fail("tcsetattr");
	if (ioctl(tty, TIOCSETD, &discipline) != 0)
		return fail("TIOCSETD");
	if (ioctl(tty, HCI_UART_SET_PROTOCOL, HCI_UART_H4) != 0)
		return fail("HCIUARTSETPROTO");
	hci = socket(AF_BLUETOOTH, SOCK_RAW, HCI_PROTOCOL);
	if (hci < 0)
		return fail("socket");
	/* The kernel has begun to power it already, and may be at it yet. */
	for (tries = 0; ioctl(hci, HCI_DEVICE_UP, FIRST_DEVICE) != 0 && errno != EALREADY; tries++) {
		if (tries == MOST_TRIES)
			return fail("HCIDEVUP");
		sleep(1);
	}
	printf("attached\n");
	fflush(stdout);
	pause();
	return 0;
}
