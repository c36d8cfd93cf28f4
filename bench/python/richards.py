class Packet:
    def __init__(self, kind, data):
        self.kind, self.data, self.next = kind, data, None

class Task:
    def __init__(self, name, priority):
        self.name, self.priority, self.queue, self.count = name, priority, None, 0

    def add(self, packet):
        packet.next = self.queue
        self.queue = packet

    def run(self, scheduler):
        packet = self.queue
        if packet is None:
            return
        self.queue = packet.next
        self.count += 1
        self.handle(packet, scheduler)

class Worker(Task):
    def handle(self, packet, scheduler):
        packet.data = [(value + self.count) % 26 for value in packet.data]
        scheduler.send("device", packet)

class Device(Task):
    def handle(self, packet, scheduler):
        packet.kind = 1 - packet.kind
        scheduler.send("handler", packet)

class Handler(Task):
    def handle(self, packet, scheduler):
        scheduler.send("worker" if packet.kind else "device", packet)

class Scheduler:
    def __init__(self):
        self.tasks = {}

    def add(self, task):
        self.tasks[task.name] = task

    def send(self, name, packet):
        self.tasks[name].add(packet)

    def loop(self, rounds):
        order = sorted(self.tasks.values(), key=lambda task: task.priority)
        for _ in range(rounds):
            for task in order:
                task.run(self)

scheduler = Scheduler()
for kind, name, priority in ((Worker, "worker", 3), (Device, "device", 2), (Handler, "handler", 1)):
    scheduler.add(kind(name, priority))
for number in range(6):
    scheduler.send("handler", Packet(number % 2, [number] * 4))
scheduler.loop(120000)
